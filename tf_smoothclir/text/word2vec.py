"""Word vectors trained on texts alone, with gensim's word2vec (Mikolov et al. 2013)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import text_batches
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.progress import progress_bar

_MAX_TOKENS = 10_000  # of a text; gensim reads no more of a line


def train_word_vectors(
    texts: Iterable[str], *, dim: int, epochs: int, min_count: int, workers: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """Trains skip-gram vectors with negative sampling on texts, as this package tokenises them.

    They are scaled to a standard deviation of 1, that of the random vectors they stand in for:
    with ε = 1, short vectors have low scores.

    Args:
        texts: All texts of one language, or of both where they share a vocabulary.
        dim: Length of a vector.
        epochs: Passes over the texts.
        min_count: Words that are seen less often get no vector.
        workers: Threads; with more than one, no two trainings give the same vectors.
        seed: Of the random numbers.

    Returns:
        The words, the most frequent one first, and `[words, dim]` float32.

    Raises:
        InputError: gensim is not installed, or no word is seen often enough.
    """
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError as error:
        raise InputError(
            f"gensim is not installed ({error}): pip install '.[vectors]' in the checkout"
        ) from error

    with tempfile.TemporaryDirectory() as directory:
        corpus = Path(directory, "texts")
        _write_corpus(corpus, texts)
        model = Word2Vec(
            vector_size=dim, sg=1, min_count=min_count, workers=workers, seed=seed, epochs=epochs
        )
        model.build_vocab(corpus_file=str(corpus))
        if not len(model.wv):
            raise input_error(
                f"--min_count={min_count}", "no word is seen as often", "Lower it, or add texts"
            )
        with progress_bar(epochs, "Train word vectors", "epochs") as bar:

            class Shown(CallbackAny2Vec):
                def on_epoch_end(self, model):
                    bar.update(1)

            model.train(
                corpus_file=str(corpus),
                total_examples=model.corpus_count,
                total_words=model.corpus_total_words,
                epochs=epochs,
                callbacks=[Shown()],
            )
    return list(model.wv.index_to_key), model.wv.vectors / model.wv.vectors.std()


def _write_corpus(path: Path, texts: Iterable[str]) -> None:
    """Writes a text a line, its tokens with spaces between; no token holds white space."""
    with open(path, "wb") as file, progress_bar(None, "Tokenise texts", "texts") as bar:
        for batch in text_batches(texts):
            tokens = tokenize(tf.constant(batch), _MAX_TOKENS)
            lines = tf.strings.reduce_join(tokens, axis=1, separator=" ")
            file.writelines(line + b"\n" for line in lines.numpy())
            bar.update(len(batch))
