"""Writes the training lists of a set as TFRecord shards, for remote storage and several workers.

It writes the vocabularies too, and a manifest with the hash of each file. The sampled documents are
those that smoothclir-train samples with the same --negatives and --seed.
"""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.extras import distributed as distributed  # registers its rules
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.training import TrainingSettings as Training

_OWN = {"module_name": command.COMMAND}
_OUTPUT_DIR = setting_flags.define_path("output_dir", "runs/shards", "Local directory.")
_OVERWRITE = flags.DEFINE_boolean("overwrite", False, "Replace the shards in --output_dir.", **_OWN)
_SHARDS = flags.DEFINE_integer("num_shards", 8, "How many; at least one per worker.", 1, **_OWN)
_NEGATIVES = flags.DEFINE_integer(
    "negatives", Training.negatives, "Sampled documents of grade 0 per query.", 0, **_OWN
)
_SEED = flags.DEFINE_integer("seed", Training.seed, "Seed of the sampling.", 0, **_OWN)
_THRESHOLDS = setting_flags.flag(
    "thresholds",
    ModelSettings.thresholds,
    "As in training. Only their number counts here: K-1 for grades 0..K-1.",
)
setting_flags.define_settings(["data", "text"])


def main(argv) -> None:
    """Writes the shards."""
    del argv
    settings = setting_flags.settings_from_flags(num_shards=_SHARDS.value)
    setting_flags.check_data(settings.data)
    from tf_smoothclir.data.candidate_lists import candidate_lists
    from tf_smoothclir.data.preparation import tokenize_set
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.extras.distributed.writer import free_directory, write_shards
    from tf_smoothclir.training.evaluated_sets import with_grades_of_set

    data, text, thresholds = settings.data, settings.text, _THRESHOLDS.value
    if not _THRESHOLDS.present:
        thresholds = with_grades_of_set(settings, _OUTPUT_DIR.value).model.thresholds
    free_directory(_OUTPUT_DIR.value, overwrite=_OVERWRITE.value)  # fails before the work
    grades = len(thresholds) + 1
    retrieval_set = RetrievalSet.load(source_of(data), num_grades=grades, seed=data.split_seed)
    sampling = {"negatives": _NEGATIVES.value, "seed": _SEED.value}
    lists = candidate_lists(retrieval_set, split="train", **sampling)
    tokenized_set = tokenize_set(retrieval_set, text, data.cache_dir)
    to = (_OUTPUT_DIR.value, _SHARDS.value)
    more = {**sampling, "text": text, "overwrite": _OVERWRITE.value}
    print(f"{_OUTPUT_DIR.value}: {write_shards(tokenized_set, lists, *to, **more).manifest}")


def run() -> None:
    """Entry point of `smoothclir-shards`."""
    command.run_main(main, __doc__, ["data", "text"])


if __name__ == "__main__":
    run()
