"""Searches hyperparameters on the validation split, or by cross-validation, with keras-tuner.

The flags of smoothclir-train give the fixed settings; --tune names the settings to search. What has
them is trained: towers, translation table or both, as in --preset=best where it has them. Without
--data_dir, the search is on the built-in toy world. The same command continues an interrupted or
killed search: no trial is lost or repeated. At the end it writes tables of all trials, a heat map
of the thresholds, and best.flags, which smoothclir-train takes with --flagfile. Trials are ranked
by --select_metric of the chosen --retriever; those of a hybrid are of the sum of its halves.
"""

from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.run import GROUPS
from tf_smoothclir.settings.search import Search

_OWN = {"module_name": command.COMMAND}
_OUTPUT_DIR = setting_flags.define_path("output_dir", "runs/tune", "Where all files go.")
_OVERWRITE = flags.DEFINE_boolean("overwrite", False, "Delete the search in --output_dir.", **_OWN)
_AT_A_TIME = "Trials at the same time, each in its own process."
_WORKERS = flags.DEFINE_integer("workers", 1, _AT_A_TIME, lower_bound=1, **_OWN)
setting_flags.define_fields(Search)
setting_flags.define_run_settings()


def main(_argv) -> None:
    """Runs the search that the flags describe."""
    given, output_dir, overwrite = flags.FLAGS, _OUTPUT_DIR.value, _OVERWRITE.value
    search = setting_flags.group_from_flags(Search)
    settings = setting_flags.run_settings_from_flags(varied=search.tune, tune=search.tune)
    if not Path(output_dir).exists():  # a search that is finished needs no set
        setting_flags.check_data(settings.data)
    from tf_smoothclir.training.evaluated_sets import with_grades_of_set
    from tf_smoothclir.tuning.search_directory import trial_table
    from tf_smoothclir.tuning.tune import tune
    from tf_smoothclir.utils.printing import print_table

    if not (given["thresholds"].present or settings.training.init_from):
        settings = with_grades_of_set(settings, output_dir)
    trials = tune(settings, search, output_dir, num_workers=_WORKERS.value, overwrite=overwrite)
    if trials:  # else this is a worker
        header, rows = trial_table(trials, settings.training.select_metric)
        print_table(header, rows[:5])
        print(f"All {len(trials)} trials: {output_dir}/trials.md. Train with the best:")
        command_line = f"--flagfile={output_dir}/best.flags --output_dir={output_dir}-best"
        print(f"  smoothclir-train {command_line}")


def run() -> None:
    """Entry point of `smoothclir-tune`."""
    command.run_main(main, __doc__, tuple(GROUPS))


if __name__ == "__main__":
    run()
