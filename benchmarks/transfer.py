"""Transfer: what a table that learned from some languages knows of one that it never saw.

python -m benchmarks.transfer --data_dir=bible-en-multi

Test queries rank the documents of each language in turn, by a model of that language, one of all
languages, and one of all others, which knows what is spelled alike.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import flags

from benchmarks import common

MEASURES = ("NDCG@5", "full/MRR@10", "full/Recall@100")
_ALONE = "that language"


def measure(
    data_dir: str,
    preset: str,
    document_language: str = "all",
    given: Mapping[str, object] | None = None,
) -> list[dict]:
    """A table for each language of documents."""
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.settings.data import DataSettings

    source = source_of(DataSettings(data_dir=data_dir, document_language=document_language))
    languages = source.document_language.split(",")
    found = {language: {} for language in languages}
    with tempfile.TemporaryDirectory(prefix="smoothclir-transfer-") as directory:

        def figures(name: str, learned: Sequence[str], asked: Sequence[str]) -> None:
            settings = {"data_dir": data_dir, "document_language": ",".join(learned)}
            path = Path(directory, settings["document_language"])
            for language, row in _trained(preset, {**settings, **(given or {})}, path, asked):
                found[language][name] = [row]

        for language in languages:
            figures(_ALONE, [language], [language])
        figures("all", languages, languages)
        for language in languages:
            figures("the others", [one for one in languages if one != language], [language])
    return [
        common.table(
            f"Documents: {language}, trained on", rows, ratio_of=MEASURES[1], references=[_ALONE]
        )
        for language, rows in found.items()
    ]


def _trained(preset: str, given: Mapping, path: Path, languages: Sequence[str]):
    """Trains a model, and yields its figures on the test queries of some languages."""
    from tf_smoothclir.settings.presets import preset_settings
    from tf_smoothclir.training.evaluated_sets import with_grades_of_set
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_evaluation import evaluate_run
    from tf_smoothclir.training.train import train

    settings = with_grades_of_set(preset_settings(preset, given), path)
    train(settings, path)
    run = RunDirectory.load(path)
    for language in languages:
        data = dataclasses.replace(settings.data, document_language=language)
        content, _ = evaluate_run(run, data, ["test"], output_dir=str(path / f"on-{language}"))
        yield language, {name: content["test"][name] for name in MEASURES}


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", None, "A set with several languages of documents.")
    flags.DEFINE_string("document_language", "all", "Some of its languages, such as de,cs.")
    flags.DEFINE_string("preset", "lexical", "Preset of all models.")
    flags.mark_flag_as_required("data_dir")


if __name__ == "__main__":
    common.run(_define_flags, measure)
