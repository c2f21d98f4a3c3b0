"""Measuring one system after the other, each in a process of its own."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks import common
from benchmarks.rivals import ours
from benchmarks.rivals.catalogue import RIVALS
from benchmarks.rivals.measured import Measured, failure, latency_of, texts_per_second
from benchmarks.rivals.rival import best_variant
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, text_read
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.storage.folder import file_digest
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.memory import peak_memory

_ENCODED = 4096  # documents at most whose encoding is timed


@dataclasses.dataclass(frozen=True)
class Work:
    """What every measurement needs."""

    data: DataSettings  # the set
    directory: Path  # keeps runs, rankings and results
    fingerprint: str  # of the set
    latency_queries: int  # how many queries are timed

    def key(self, *parts: object) -> str:
        """A digest of all that a result depends on."""
        everything = [self.fingerprint, self.latency_queries, *map(str, parts)]
        return hashlib.sha256(json.dumps(everything).encode()).hexdigest()[:16]

    def retrieval_set(self) -> RetrievalSet:
        """Loads the set, whose splits must all have judged queries."""
        from tf_smoothclir.training.run_data import retrieval_set_of

        return retrieval_set_of(source_of(self.data), RunSettings(data=self.data), SPLITS)


def measured_rival(name: str, work: Work, key: str) -> Measured:
    """Trains a rival, evaluates it on the test split and times its answers."""
    from benchmarks.rivals.texts import RivalTexts
    from tf_smoothclir.evaluation.evaluate import evaluate_split
    from tf_smoothclir.protocols.scorer import RowRetriever

    rival, retrieval_set = RIVALS[name], work.retrieval_set()
    load = os.getloadavg()[0]
    texts = RivalTexts.of(retrieval_set, TextSettings())
    chosen = best_variant(rival, texts)
    evaluation = work.directory / name / "test"
    evaluate_split(
        retrieval_set,
        RowRetriever(chosen.ready.rows, retrieval_set.tie_order),
        "test",
        negatives=TrainingSettings().negatives,
        trec_dir=evaluation,
    )
    test = retrieval_set.queries_in("test")[: work.latency_queries]
    megabytes, cpu_seconds = peak_memory() / 2**20, time.process_time()
    encode = chosen.ready.encode
    return Measured(
        title=rival.title,
        key=key,
        evaluation=os.fspath(evaluation.resolve()),
        ours=False,
        quality=max(chosen.qualities.values()),
        seconds=chosen.ready.seconds,
        tuned_seconds=chosen.tuned_seconds,
        setting=chosen.ready.setting,
        tried=chosen.qualities,
        latency=latency_of(chosen.ready.answer, [texts.queries[row] for row in test]),
        megabytes=megabytes,
        load=load,
        packages=rival.versions(),
        cpu_seconds=cpu_seconds,
        texts_per_second=texts_per_second(encode, _some_documents(retrieval_set)) if encode else 0,
    )


def _some_documents(retrieval_set: RetrievalSet) -> list[str]:
    """The first documents of a set as they are written."""
    documents = islice(retrieval_set.source.documents(), _ENCODED)
    return [text_read(text, titles=True) for text in documents]


def measured_ours(
    name: str,
    title: str,
    run_dir: Path,
    component: str,
    work: Work,
    key: str,
    cpu_seconds: float,
) -> Measured:
    """Takes the figures of a finished run and times its answers."""
    retrieval_set = work.retrieval_set()
    rows = set(retrieval_set.queries_in("test")[: work.latency_queries].tolist())
    texts = enumerate(retrieval_set.source.queries())
    queries = [text.text for row, text in texts if row in rows]
    run_key = file_digest(run_dir / "metrics.json")[:16]
    export_dir = work.directory / name / f"export-{run_key}"
    found = ours.measured_run(title, run_dir, component, key, queries, export_dir)
    return dataclasses.replace(found, cpu_seconds=cpu_seconds)


class Systems:
    """Measures one system after the other, each in a process of its own.

    Attributes:
        done: Title -> what was measured.
        left_out: Title -> why there is nothing.
    """

    def __init__(self, work: Work):
        self.done: dict[str, Measured] = {}
        self.left_out: dict[str, str] = {}
        self._work = work

    def add_preset(self, preset: str) -> None:
        """Trains a preset unless that is done, and measures it."""
        title, run_dir = f"--preset={preset}", self._work.directory / preset / "run"
        cpu_seconds, reason = _alone(partial(ours.train_preset, preset, self._work.data, run_dir))
        if reason:
            self._leave_out(title, reason)
        else:
            self.add_run(preset, title, run_dir, cpu_seconds)

    def add_run(self, name: str, title: str, run_dir: Path, cpu_seconds: float = 0.0) -> None:
        """Measures a finished run, which took `cpu_seconds` to train; 0 if unknown."""
        try:
            run = ours.checked_run(run_dir, self._work.fingerprint)
        except InputError as error:
            self._leave_out(title, failure(error))
            return
        digest = file_digest(run / "metrics.json")
        for component in ("", *ours.components_of(run)):
            own_title = f"{title}, its {component} half" if component else title
            key = self._work.key(own_title, digest)
            cost = 0.0 if component else cpu_seconds
            measure = partial(measured_ours, name, own_title, run, component, self._work, key, cost)
            directory = os.path.join(name, component) if component else name
            self._add(directory, own_title, key, measure)

    def add_rival(self, name: str) -> None:
        """Measures a rival, if its packages are installed."""
        rival = RIVALS[name]
        missing = rival.missing()
        if missing:
            self._leave_out(rival.title, missing)
            return
        key = self._work.key(name, rival.recipe, rival.versions())
        self._add(name, rival.title, key, partial(measured_rival, name, self._work, key))

    def _add(self, name: str, title: str, key: str, measure: Callable[[], Measured]) -> None:
        directory = make_directory(self._work.directory / name, "--work_dir")
        found = Measured.load_from(directory)
        if found is None or found.key != key:
            found, reason = _alone(measure)
            if found is None:
                self._leave_out(title, reason)
                return
            found.save(directory)
        self.done[title] = found
        print(f"{title}: validation {found.quality:.4f}, learned in {found.seconds:.1f} s")

    def _leave_out(self, title: str, reason: str) -> None:
        self.left_out[title] = reason
        print(f"{title}: left out: {reason}")


def _alone(measure: Callable) -> tuple[object, str]:
    """Runs in a new process; returns its result, or None and why there is none."""
    try:
        with ProcessPoolExecutor(1, mp_context=common.PROCESSES) as pool:
            return pool.submit(_guarded, measure).result()
    except BrokenProcessPool:
        return None, "its process was killed; it may need more memory than there is"


def _guarded(measure: Callable) -> tuple[object, str]:
    try:
        return measure(), ""
    except Exception as error:  # of whatever package: the other systems go on
        return None, failure(error)
