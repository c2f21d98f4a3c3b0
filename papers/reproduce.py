"""Reproduces tables and figures of three papers on a set, with significance tests.

They are those of Liu et al. 2020 and, by the beginnings of their names, of Yu and Allan 2020
(yu2020) and of Li and Cheng 2018 (li2018).

Each experiment is a grid of training runs ("cells"), which run on all cores and are kept in
OUTPUT_DIR/cells. The same command continues interrupted cells and skips finished ones; tables and
figures share their cells. Cells of other versions of the code are trained again, and pages name
the version that made them. Short runs of the first seed tune the thresholds on validation.
OUTPUT_DIR/EXPERIMENT gets Markdown, CSV, LaTeX and PNG files; OUTPUT_DIR/report.md lists them.
Without --data_dir, the experiments use the built-in toy world. They set loss, tower and seed
themselves: --loss, --tower and --seed have no effect.

Runs: Table 2 has at least 44 short runs (9 pairs of thresholds as far as scores reach them, 8
triples of cut points, for 5 losses; more where the best lies at an edge) and 5 full runs per seed;
Table 3 adds 2 per seed, Figure 3 none, Figure 4 about 60 short runs and 8 per seed, Figure 5 adds
8 per seed; yu2020_table3 18 small ones, two towers and a translation table, yu2020_figure1 10. The
tables of Li and Cheng 2018, li2018_..., have 7, 6 and 11 more runs per seed. The pages in papers/
have times and results.
"""

from __future__ import annotations

import shlex
import sys

from absl import logging

from tf_smoothclir.command_line import command
from tf_smoothclir.papers.laboratory.catalogue import EXPERIMENTS
from tf_smoothclir.papers.laboratory.request import GROUPS, WORKERS, requested


def main(argv) -> None:
    """Runs the experiments that the arguments name."""
    names, study = requested(argv[1:])
    # This import takes seconds, so the flags are checked first.
    from tf_smoothclir.papers.laboratory.reproduce import reproduce

    command_line = shlex.join(["smoothclir-reproduce", *sys.argv[1:]])
    failures = reproduce(names, study, processes=WORKERS.value, command=command_line)
    print(f"Report: {study.output_dir}/report.md")
    if failures:
        logging.flush()
        sys.exit("error: these runs failed, all others are done:\n" + "\n".join(failures))


def run() -> None:
    """Entry point of `smoothclir-reproduce`."""
    command.run_main(main, __doc__, GROUPS, arguments=f"{' '.join(EXPERIMENTS)}, or all")


if __name__ == "__main__":
    run()
