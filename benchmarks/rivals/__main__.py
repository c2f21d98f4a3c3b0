"""This package and its rivals on one retrieval set: quality, significance, time, latency.

python -m benchmarks.rivals --data_dir=... --document_language=de

Trains each rival whose packages are installed and each of our presets, or takes finished runs of
smoothclir-train (--run_dir), and writes one page with all of them and a JSON file. What is missing
or fails is named with its reason, and the others go on. To continue after an interruption, give the
same command again: what is done is not done again.
"""

from __future__ import annotations

from absl import flags

from benchmarks.rivals.catalogue import RIVALS
from benchmarks.rivals.set_page import given_runs, measure_set
from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.presets import PRESETS

_OF_THE_PAPER = ("fast", "paper")  # not what this package ranks best with
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    "papers/results/rivals",
    "Gets <set>.md and <set>.json.",
    module_name=command.COMMAND,
)
_WORK_DIR = flags.DEFINE_string(
    "work_dir",
    "",
    "Keeps runs, rankings and results, to continue from; empty: rivals/<set> in the cache.",
    module_name=command.COMMAND,
)
_RIVALS = flags.DEFINE_multi_enum(
    "rival",
    list(RIVALS),
    list(RIVALS),
    "A rival; repeat the flag for more. Default: all.",
    module_name=command.COMMAND,
)
_RUN_DIRS = flags.DEFINE_multi_string(
    "run_dir",
    [],
    "A finished run of smoothclir-train on this set, as NAME=DIRECTORY; repeat the flag for more."
    " Without it, the presets are trained.",
    module_name=command.COMMAND,
)
_PRESETS = flags.DEFINE_multi_enum(
    "preset",
    [name for name in PRESETS if name not in _OF_THE_PAPER],
    list(PRESETS),
    "A preset to train, unless there is a --run_dir; repeat the flag for more.",
    module_name=command.COMMAND,
)
_LATENCY_QUERIES = flags.DEFINE_integer(
    "latency_queries",
    500,
    "Test queries whose answers are timed, one by one.",
    lower_bound=1,
    module_name=command.COMMAND,
)
setting_flags.define_settings(["data"])


def main(argv) -> None:
    """Measures all systems and writes the page."""
    del argv
    measure_set(
        setting_flags.settings_from_flags().data,
        rivals=_RIVALS.value,
        presets=_PRESETS.value,
        runs=given_runs(_RUN_DIRS.value),
        work_dir=_WORK_DIR.value,
        output_dir=_OUTPUT_DIR.value,
        latency_queries=_LATENCY_QUERIES.value,
        choices=[
            f"--{flag.name}={value}"
            for flag in (_PRESETS, _RIVALS)
            if flag.present
            for value in flag.value
        ],
    )


if __name__ == "__main__":
    command.run_main(main, __doc__, ["data"])
