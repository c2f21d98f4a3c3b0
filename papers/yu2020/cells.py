"""Cells of Yu and Allan 2020: one system on one set with one seed, over all of its rotations."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists, pair_key
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED, evaluate_splits, metrics_content
from tf_smoothclir.papers.laboratory.cells import CellDirectory, cell_name
from tf_smoothclir.papers.yu2020.matching_data import MatchingData
from tf_smoothclir.papers.yu2020.options import PAIRS, MatchingOptions
from tf_smoothclir.papers.yu2020.ranking import scorer_of
from tf_smoothclir.papers.yu2020.rotations import rotated_sets
from tf_smoothclir.papers.yu2020.systems import MatchingSystem
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import open_to_write, read_arrays, read_json, write_json
from tf_smoothclir.training.peak_memory import peak_memory
from tf_smoothclir.training.run_data import retrieval_set_of


@dataclasses.dataclass(frozen=True)
class MatchingCell:
    """One system on one set with one seed."""

    settings: RunSettings  # of data, text, word vectors, negatives and seed
    set_name: str  # name of the retrieval set
    fingerprint: str  # of the set's content
    system: MatchingSystem  # what ranks
    options: MatchingOptions  # how it is trained and measured

    segments = ()  # no thresholds
    tuning = False

    @property
    def name(self) -> str:
        """A readable name, unique to what has an effect."""
        settings = self.settings
        options = self.options.that_matter_to(self.system)
        values = [dataclasses.asdict(group) for group in (self.system, options)]
        values += [dataclasses.asdict(settings.text), settings.training.negatives]
        values += [dataclasses.asdict(settings.model)] * (self.options.word_vectors != PAIRS)
        values += [settings.data.max_queries] * (settings.data.max_queries > 0)
        parts = ["yu2020", self.set_name, self.system.name, f"s{settings.training.seed}"]
        return cell_name(parts, [values, self.fingerprint])


class MatchingCellDirectory(CellDirectory):
    """The files of such a cell: a directory with metrics, TREC files, and its rotations' scores."""

    def __init__(self, output_dir: Path, cell: MatchingCell):
        super().__init__(output_dir, cell)
        self._vectors = Path(output_dir, "word_vectors")

    def complete(self) -> None:
        """Trains and evaluates; rotations that are done already are not repeated."""
        cell = self.cell
        settings = cell.settings
        self.path.mkdir(parents=True, exist_ok=True)
        retrieval_set = retrieval_set_of(source_of(settings.data), settings, SPLITS)
        rotations = [retrieval_set]
        if cell.options.folds:
            rotations = rotated_sets(retrieval_set, cell.options.folds, settings.data.split_seed)
        parts = [self._rotation(number, one) for number, one in enumerate(rotations)]
        known = KnownScores([part[0] for part in parts])
        if cell.options.folds:
            retrieval_set = _all_for_testing(retrieval_set)
        evaluations = evaluate_splits(
            retrieval_set,
            known,
            self._splits,
            negatives=settings.training.negatives,
            trec_dir=self.run.evaluation,
        )
        result = metrics_content(evaluations, settings.training.negatives)
        result["training"], result["history"] = _training([part[1] for part in parts])
        write_json(self.run.metrics, result)
        write_json(self._mark, {"set": cell.set_name, "fingerprint": cell.fingerprint})

    @property
    def _splits(self) -> tuple[str, ...]:
        """Those that are measured; in rotations, every query is a test query once."""
        return ("test",) if self.cell.options.folds else ("test", "validation")

    def _rotation(self, number: int, retrieval_set: RetrievalSet) -> tuple[dict, dict]:
        """The scores of test and validation lists, and how learning went."""
        kept, facts = (self.path / f"rotation-{number}{end}" for end in (".npz", ".json"))
        if not facts.is_file():
            scores, learned = self._computed(retrieval_set)
            with open_to_write(kept) as file:
                np.savez(file, **scores)
            write_json(facts, learned)
        return read_arrays(kept), read_json(facts)

    def _computed(self, retrieval_set: RetrievalSet) -> tuple[dict, dict]:
        cell, settings = self.cell, self.cell.settings
        negatives, seed = settings.training.negatives, settings.training.seed
        begin = time.monotonic()
        tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir)
        data = MatchingData(tokenized_set, settings, cell.options, self._vectors)
        scorer, learned = scorer_of(cell.system, data, cell.options, negatives=negatives, seed=seed)
        keys, scores = [], []
        for split in self._splits:
            lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=NEGATIVES_SEED)
            keys.append(pair_key(lists.pair_query_rows, lists.document_rows))
            scores.append(scorer.score(lists))
        found = {"keys": np.concatenate(keys), "scores": np.concatenate(scores)}
        facts = {"seconds": round(time.monotonic() - begin, 3), "epochs": 0, "best_epoch": 0}
        if learned is not None:
            facts |= {
                "learning_seconds": learned.seconds,
                "epochs": len(learned.losses),
                "best_epoch": learned.best_epoch,
                "validation": learned.history,
                "losses": learned.losses,
            }
        return found, facts


class KnownScores:
    """Scores of pairs that were computed before; a `Scorer`."""

    def __init__(self, parts: list[dict[str, np.ndarray]]):
        keys = np.concatenate([part["keys"] for part in parts])
        order = np.argsort(keys)
        self._keys = keys[order]
        self._scores = np.concatenate([part["scores"] for part in parts])[order]

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32; raises `KeyError` for a pair without a score."""
        wanted = pair_key(lists.pair_query_rows, lists.document_rows)
        places = np.searchsorted(self._keys, wanted)
        known = np.isin(wanted, self._keys)
        if not known.all():
            raise KeyError(f"{np.sum(~known)} of {len(wanted)} pairs have no score.")
        return self._scores[places]


def _all_for_testing(retrieval_set: RetrievalSet) -> RetrievalSet:
    splits = np.full_like(retrieval_set.splits, -1)
    splits[np.unique(retrieval_set.query_rows)] = SPLITS.index("test")
    return dataclasses.replace(retrieval_set, splits=splits)


def _training(learned: list[dict]) -> tuple[dict, list[dict]]:
    """What `metrics.json` says of training, over all rotations."""
    facts = {
        "seconds": sum(one["seconds"] for one in learned),
        "learning_seconds": sum(one.get("learning_seconds", 0) for one in learned),
        "epochs": sum(one["epochs"] for one in learned),
        "best_epochs": [one["best_epoch"] for one in learned],
        "peak_rss_mb": round(peak_memory() / 2**20, 1),
    }
    history = [
        {"rotation": number, "validation": one.get("validation", []), "losses": one.get("losses")}
        for number, one in enumerate(learned)
    ]
    return facts, history
