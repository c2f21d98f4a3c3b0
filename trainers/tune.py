"""Searches hyperparameters on the validation split, or by cross-validation, with keras-tuner.

The flags of smoothclir-train give the fixed settings; --tune names the settings to search. Without
--data_dir, the search is on the built-in toy world. The same command continues an interrupted or
killed search: no trial is lost or repeated. At the end it writes tables of all trials, a heat map
of the thresholds, and best.flags, which smoothclir-train takes with --flagfile. Trials are ranked
by --select_metric of the chosen --retriever; those of a hybrid are of the sum of its halves.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.run import GROUPS

_OWN = {"module_name": command.COMMAND}
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "runs/tune", "Where all files go.", **_OWN)
_OVERWRITE = flags.DEFINE_boolean("overwrite", False, "Delete the search in --output_dir.", **_OWN)
_TUNE = flags.DEFINE_list(
    "tune",
    ["thresholds"],
    "Settings to search: thresholds (rising, from 0.1 to 0.9 in steps of 0.1), epsilon (0.1 to 2),"
    " learning_rate (0.001 to 0.1), dim (32, 64, 128), temperature (0.05 to 1), loss and"
    " optimizer (all choices), tower (average_pooling, cnn, lstm, max_lstm); with"
    " --objective=adversarial, gamma1, gamma2, gamma3 (0.01 to 100), beta (1 to 20),"
    " adversarial_weight (0 to 1); with --retriever=lexical or hybrid, psq_alpha (0.003 to 0.3),"
    " psq_beta (0 to 0.7).",
    **_OWN,
)
_SEARCH = flags.DEFINE_enum(
    "search",
    "grid",
    ["grid", "random", "bayesian", "hyperband"],
    "grid: all combinations in order, as in the paper. random: in random order, each at most once."
    " bayesian: guided by a Gaussian process. hyperband: many short trials, the best ones repeated"
    " with more epochs, up to --epochs.",
    **_OWN,
)
_MAX_TRIALS = flags.DEFINE_integer(
    "max_trials",
    36,
    "Most trials; the whole grid of thresholds for three grades has 36. May be raised later.",
    lower_bound=1,
    **_OWN,
)
_FOLDS = flags.DEFINE_integer(
    "folds",
    0,
    "Folds of cross-validation over the training and validation queries. 0 or 1: no"
    " cross-validation, but the validation split of the set.",
    lower_bound=0,
    **_OWN,
)
_WORKERS = flags.DEFINE_integer(
    "workers", 1, "Trials at the same time, each in its own process.", lower_bound=1, **_OWN
)
_WORKER_TIMEOUT = flags.DEFINE_float(
    "worker_timeout",
    300.0,
    "Seconds of silence after which a chief hands the trial of a worker out again. Workers on other"
    " machines: set KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT.",
    lower_bound=1.0,
    **_OWN,
)
setting_flags.define_preset()
setting_flags.define_settings()


def main(argv) -> None:
    """Runs the search that the flags describe."""
    del argv
    settings = setting_flags.run_settings_from_flags(varied=_TUNE.value, tune=_TUNE.value)
    if not Path(_OUTPUT_DIR.value).exists():  # a search that is finished needs no set
        setting_flags.check_data_dir(settings.data.data_dir)
    from tf_smoothclir.tuning import tune
    from tf_smoothclir.tuning.search_directory import Search
    from tf_smoothclir.tuning.trial_results import print_best_trials

    output_dir = _OUTPUT_DIR.value
    found = tune.tune(
        settings,
        Search(_SEARCH.value, tuple(_TUNE.value), _MAX_TRIALS.value, _FOLDS.value),
        output_dir,
        num_workers=_WORKERS.value,
        worker_timeout=_WORKER_TIMEOUT.value,
        overwrite=_OVERWRITE.value,
    )
    if found:
        print_best_trials(found, settings.training.select_metric)
        print(f"All {len(found)} trials: {output_dir}/trials.md. Train with the best:")
        print(
            f"  smoothclir-train --flagfile={output_dir}/best.flags --output_dir={output_dir}-best"
        )


def run() -> None:
    """Entry point of `smoothclir-tune`."""
    command.run_main(main, __doc__, tuple(GROUPS))


if __name__ == "__main__":
    run()
