"""Compares systems with a baseline: differences, intervals, significance tests, effect sizes.

RUN is the directory of a finished smoothclir-train, one that smoothclir-evaluate wrote, such as
RUN/evaluation/by-lexical, or a TREC run file of any system, which needs --qrels. The first RUN is
the baseline. Of run directories, full retrieval is compared (full/...), with --nofull the candidate
lists of the paper. All queries have the same weight.
"""

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.settings.training import COMPARED, CROSS_VALIDATION

_OWN = {"module_name": command.COMMAND}
_SPLIT = "Split to compare, of run directories; cross-validation: of trainings with --folds."
flags.DEFINE_enum("split", "test", [*SPLITS, CROSS_VALIDATION], _SPLIT, **_OWN)
flags.DEFINE_boolean("full", True, "Compare full retrieval, of run directories.", **_OWN)
_QRELS = (
    "TREC qrels of runs that are files; full retrieval of run directories is judged by them too."
)
setting_flags.define_path("qrels", "", _QRELS)
_MEASURES = "To compare by; others than these are those of ir_measures, such as nDCG@20,RR."
flags.DEFINE_list("measures", list(COMPARED), _MEASURES, **_OWN)
flags.DEFINE_string("baseline", "", "Name in the table; empty: the first run.", **_OWN)
_PATTERNS = "Random sign patterns that the randomisation test draws."
flags.DEFINE_integer("samples", 100_000, _PATTERNS, lower_bound=1, **_OWN)
flags.DEFINE_integer("seed", 13, "Of randomisation test and bootstrap.", lower_bound=0, **_OWN)
_FILES = "Directory for comparison.md and .json; empty: the table is only printed."
_OUTPUT_DIR = setting_flags.define_path("output_dir", "", _FILES)


def main(argv) -> None:
    """Compares the given runs."""
    from tf_smoothclir.api.comparison import compare
    from tf_smoothclir.evaluation.comparison_report import HEADER, table_rows
    from tf_smoothclir.utils.printing import print_table, visible_lines

    names = ("measures", "baseline", "split", "full", "qrels", "samples", "seed")
    given = {name: flags.FLAGS[name].value for name in names}
    comparison = compare(*argv[1:], **given)
    print_table(HEADER, table_rows(comparison.rows, comparison.baseline))
    print(visible_lines(comparison.legend), end="")
    if _OUTPUT_DIR.value:
        comparison.save(_OUTPUT_DIR.value)
        print(f"\nTables: {_OUTPUT_DIR.value}/comparison.md, .json")


def run() -> None:
    """Entry point of `smoothclir-compare`."""
    command.run_main(main, __doc__, arguments="RUN RUN ...")


if __name__ == "__main__":
    run()
