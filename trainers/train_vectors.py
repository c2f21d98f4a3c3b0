"""Trains word vectors on your own texts with word2vec, for --query_embeddings and the like.

It needs gensim: pip install '.[vectors]' in the checkout. Texts need no judgments. The .npz goes to
smoothclir-train as --query_embeddings or --document_embeddings, as both with --shared_vocabulary.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command

_OWN = {"module_name": command.COMMAND}
_ROLE = flags.DEFINE_enum(
    "role",
    "document",
    ["query", "document", "both"],
    "Whose texts; both for a run with --shared_vocabulary.",
    **_OWN,
)
_OUTPUT = flags.DEFINE_string("output", None, "The .npz file to write.", required=True, **_OWN)
_DIM = flags.DEFINE_integer(
    "dim", 64, "Length of a vector; that of the run that it is for.", lower_bound=1, **_OWN
)
_EPOCHS = flags.DEFINE_integer("epochs", 5, "Passes over the texts.", lower_bound=1, **_OWN)
_MIN_COUNT = flags.DEFINE_integer(
    "min_count", 5, "Words that are seen less often get no vector.", lower_bound=1, **_OWN
)
_WORKERS = flags.DEFINE_integer(
    "workers",
    os.cpu_count() or 1,
    "Threads; only one gives the same vectors each time.",
    lower_bound=1,
    **_OWN,
)
_SEED = flags.DEFINE_integer("seed", 13, "Seed of the random numbers.", lower_bound=0, **_OWN)
command.define_settings(["data"])


def main(argv) -> None:
    """Trains as the flags say."""
    del argv
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.text.embeddings import save_embeddings
    from tf_smoothclir.text.word2vec import train_word_vectors
    from tf_smoothclir.utils.files import make_directory

    make_directory(Path(_OUTPUT.value).parent, "--output")  # before minutes are spent
    source = source_of(command.settings_from_flags("data"))
    readers = {"query": [source.queries], "document": [source.documents]}
    readers["both"] = readers["query"] + readers["document"]
    texts = itertools.chain.from_iterable(reader() for reader in readers[_ROLE.value])
    words, vectors = train_word_vectors(
        (text.text for text in texts),
        dim=_DIM.value,
        epochs=_EPOCHS.value,
        min_count=_MIN_COUNT.value,
        workers=_WORKERS.value,
        seed=_SEED.value,
    )
    save_embeddings(_OUTPUT.value, words, vectors)
    print(f"{_OUTPUT.value}: {len(words)} words of dimension {_DIM.value}")


def run() -> None:
    """Entry point of `smoothclir-vectors`."""
    command.run_main(main, __doc__, ["data"])


if __name__ == "__main__":
    run()
