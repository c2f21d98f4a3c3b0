"""What the translation table is learned from, and what pruning costs: quality on validation.

python -m benchmarks.translation_table --data_dir=... --document_language=de

Each row learns one table by IBM Model 1 and ranks by probabilistic structured queries, without
learned weights of words and without feedback. Quality is what training chooses by: the mean of
NDCG@5 of candidate lists and MRR@10 of full retrieval, on a sample of 1,000 validation queries.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
from absl import flags

from benchmarks import common
from tf_smoothclir.lexical.training_pairs import AGREEMENTS, TableChoices
from tf_smoothclir.lexical.words import FLAT, PositionProfile
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings


@dataclasses.dataclass(frozen=True)
class Variant:
    """A way to learn a table."""

    profile: PositionProfile = FLAT  # weights of positions, in learning and in scoring
    words: int = 1000  # of a document of the highest grade, the first that are learned from
    # Weight of pairs of a grade below the highest; pairs of the highest have 1.
    lower_grades: float = 0.0
    agreement: float = 0.0  # share of the counts of EM
    reads_order: bool = True  # where texts are parallel
    least: float = 0.005  # probabilities below it are left out


def variants(profile: PositionProfile) -> dict[str, Variant]:
    """Name -> variant, the first with all defaults."""
    plain = Variant(profile)

    def with_(**changes) -> Variant:
        return dataclasses.replace(plain, **changes)

    return {
        "default": plain,
        **{f"first {n} words": with_(words=n) for n in (20, 40, 80)},
        **{f"lower grades weigh {w:g}": with_(lower_grades=w) for w in (0.01, 0.03, 0.1, 0.3)},
        "no order": with_(reads_order=False),
        **{f"agreement {a:g}": with_(agreement=a) for a in AGREEMENTS},
        **{f"least {p:g}": with_(least=p) for p in (0.0, 0.001, 0.02, 0.05, 0.1, 0.2)},
    }


def measure(data: DataSettings, profile: PositionProfile, kind: str = "") -> list[dict]:
    """The table: the default, and each variant whose name begins with `kind`."""
    from tf_smoothclir.data.preparation import tokenize_set
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.sources.source import SPLITS
    from tf_smoothclir.lexical.texts import LexicalTexts
    from tf_smoothclir.training.run_data import retrieval_set_of

    settings = RunSettings(data=data)
    retrieval_set = retrieval_set_of(source_of(data), settings, SPLITS)
    tokenized_set = tokenize_set(retrieval_set, settings.text, data.cache_dir)
    texts = LexicalTexts(tokenized_set, settings.text.max_query_tokens)
    measured = {
        name: [_measured(texts, one)]
        for name, one in variants(profile).items()
        if name == "default" or name.startswith(kind)
    }
    title = f"{data.data_dir or 'toy world'}, {profile}"
    return [common.table(title, measured, ratio_of="quality", references=["default"])]


def _measured(texts, variant: Variant) -> dict[str, float]:
    from tf_smoothclir.lexical.ibm_model_1 import pruned
    from tf_smoothclir.lexical.postings import lexical_rows
    from tf_smoothclir.lexical.psq import background, impacts, spelling_mixed_in
    from tf_smoothclir.lexical.training_pairs import TrainingPairs
    from tf_smoothclir.lexical.validation import Validation, quality

    every = np.arange(len(texts.retrieval_set.document_ids))
    cut = texts.documents.of(every, variant.words)
    _ = texts.similar_words  # the same for all variants
    begin = time.perf_counter()
    pairs = TrainingPairs(texts)
    pairs = pairs.of_passages(cut.of(pairs.mates.documents))
    plain = pairs.plain_choices if variant.reads_order else TableChoices()
    choices = plain._replace(
        profile=variant.profile, lower_grades=variant.lower_grades, agreement=variant.agreement
    )
    ((table, _),) = pairs.tables(choices, [pairs.training])
    table = pruned(table, variant.least)
    seconds = time.perf_counter() - begin
    shares = texts.documents.matrix(variant.profile)
    mixed = spelling_mixed_in(table, texts.spelling)
    found = impacts([shares], mixed, background(texts.queries[pairs.training]))
    rows = lexical_rows(texts.queries, found)
    (measured,) = Validation(texts.retrieval_set).per_query(lambda queries: [rows(queries)])
    ndcg, reciprocals, _ = np.nanmean(measured, axis=0)
    return {
        "quality": quality(measured),
        "NDCG@5": ndcg,
        "MRR@10": reciprocals,
        "entries": table.nnz,
        "impacts": found.nnz,
        "seconds": seconds,
    }


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", "", "Retrieval set; empty: the toy world.")
    flags.DEFINE_string("document_language", "fr", "Document language.")
    flags.DEFINE_string("cache_dir", "", "Cache of tokenized sets; empty: ~/.cache/tf_smoothclir.")
    flags.DEFINE_float("height", 0.0, "Height of the profile of positions; 0 for a flat one.")
    flags.DEFINE_float("decay", 15.0, "Its decay in words.")
    flags.DEFINE_string("kind", "", "Measure variants of this kind alone, such as 'least'.")


def _measure(
    data_dir: str, document_language: str, cache_dir: str, height: float, decay: float, kind: str
) -> list[dict]:
    data = DataSettings(data_dir=data_dir, document_language=document_language, cache_dir=cache_dir)
    return measure(data, PositionProfile(height, decay) if height else FLAT, kind)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
