"""Explanation of a dense score: the share of each word of a text in the SCS with another text.

The average-pooling tower turns a text with word vectors e_1 ... e_n into f = tanh(m), where m is
their mean. Its score with a smooth-normalised vector v of the other side is

    r = v · f / (‖f‖ + ε).

Around m, tanh has the slope 1 - tanh(m)² in each coordinate, and word i enters m as e_i / n. To
first order, its share is therefore

    c_i = v · ((1 - tanh(m)²) ∘ e_i / n) / (‖f‖ + ε).

The length ‖f‖ + ε is held constant. SCS hardly depends on the length of f, so slopes through it
would tell which words turn f towards v, and would sum to nearly zero whatever the score. Because
tanh is not linear, the shares leave a remainder:

    r = Σ c_i + remainder,  remainder = v · (tanh(m) - (1 - tanh(m)²) ∘ m) / (‖f‖ + ε).

The remainder is small where the numbers in m are small; it tells how far to trust the shares. The
words of a query are explained in the same way, with the sides exchanged.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.encoder.encoder import Encoder, TokenVectors
from tf_smoothclir.encoder.tokenizer import has_letters, tokens_of
from tf_smoothclir.protocols.text_search import Explanation, SearchHit, WordShare
from tf_smoothclir.search.query_reading import EncodeQueries
from tf_smoothclir.utils.errors import input_error

# From documents, and then from queries, to `[queries, documents]` float32.
ScoreTexts = Callable[[Sequence[str]], Callable[[Sequence[str]], np.ndarray]]
# From a query, its hits and a role to the shares of words of that role.
ExplainHits = Callable[[str, Sequence[SearchHit], str], list[Explanation]]


class SavedTower:
    """A tower in TensorFlow that says what its vectors are made of, as an `Encoder` does."""

    def __init__(self, model, epsilon: float):
        self._model, self.epsilon = model, epsilon

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""
        from tf_smoothclir.index.dense_half import encode_texts  # here, as it loads FAISS

        return encode_texts(self._model.signatures["serving_default"], texts)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The words of each text with their vectors."""
        if not hasattr(self._model, "words"):
            raise input_error(
                "--explain",
                "the exported tower cannot say what its words add to a score: only average pooling"
                " can",
                "Export a run with --tower=average_pooling, or leave --explain out",
            )
        import tensorflow as tf  # here, because searches need it no earlier, if at all

        of_texts = self._model.words(tf.constant(list(texts), tf.string))
        words = [word.decode() for word in of_texts["words"].numpy().tolist()]
        vectors, ends = of_texts["vectors"].numpy(), np.cumsum(of_texts["lengths"].numpy())
        parts = map(slice, [0, *ends[:-1]], ends)
        return [TokenVectors(words[part], vectors[part]) for part in parts]


ExplainedTower = Encoder | SavedTower


def explain(text: TokenVectors, other: np.ndarray, epsilon: float) -> Explanation:
    """Explains the score of a text and the smooth-normalised vector of the other side, `[dim]`."""
    if not text.words:
        return Explanation(0.0, (), 0.0)
    vectors, other = text.vectors.astype(np.float64), other.astype(np.float64)
    pooled = np.tanh(vectors.mean(axis=0))
    length = np.linalg.norm(pooled) + epsilon
    score = float(pooled @ other / length) if length else 0.0
    slope = (1 - pooled**2) * other / (len(vectors) * length) if length else np.zeros_like(pooled)
    shares: dict[str, list[float]] = {}
    for word, share in zip(text.words, (vectors @ slope).tolist()):
        shares.setdefault(word, []).append(share)
    words = [
        WordShare(word, math.fsum(values)) for word, values in shares.items() if has_letters(word)
    ]
    words.sort(key=lambda word: -word.share)
    return Explanation(score, tuple(words), score - math.fsum(word.share for word in words))


def explain_by_vectors(
    encode: EncodeQueries,
    open_tower: Callable[[str], ExplainedTower],
    query: str,
    hits: Sequence[Text | SearchHit],
    role: str,
) -> list[Explanation]:
    """Splits the inner product of a query and each document into the shares of words."""
    tower = open_tower(role)
    if role == "query":
        (words,) = tower.token_vectors([query])
        others = open_tower("document").encode([hit.text for hit in hits])
        return [explain(words, other, tower.epsilon) for other in others]
    (other,) = encode([query]).vectors
    texts = tower.token_vectors([hit.text for hit in hits])
    return [explain(words, other, tower.epsilon) for words in texts]


def explain_by_leaving_out(
    score_texts: ScoreTexts, query: str, document: str, role: str, score: float | None = None
) -> Explanation:
    """Splits a score, by default of the texts alone, into what each word adds."""
    tokens = tokens_of(document if role == "document" else query)
    words = list(dict.fromkeys(filter(has_letters, tokens)))
    texts = [document if role == "document" else query]
    texts += [" ".join(token for token in tokens if token != word) for word in words]
    if role == "document":  # each alone, as scores may depend on the others
        scores = [score_texts([text])([query])[0, 0] for text in texts]
    else:
        scores = score_texts([document])(texts)[:, 0]
    whole = float(scores[0]) if score is None else score
    losses = [float(scores[0] - without) for without in scores[1:]]
    shares = [WordShare(word, loss) for word, loss in zip(words, losses) if loss]
    shares.sort(key=lambda word: -word.share)
    return Explanation(whole, tuple(shares), whole - sum(word.share for word in shares))


def explain_hits_by_leaving_out(
    score_texts: ScoreTexts, query: str, hits: Sequence[SearchHit], role: str
) -> list[Explanation]:
    """The same of hits, whose scores are those in a collection."""
    return [explain_by_leaving_out(score_texts, query, hit.text, role, hit.score) for hit in hits]
