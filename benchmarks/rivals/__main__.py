"""This package and its rivals on one retrieval set: quality, significance, time, latency.

python -m benchmarks.rivals --data_dir=... --document_language=de

Trains each rival whose packages are installed and each of our presets, or takes finished runs of
smoothclir-train (--run_dir), and writes one page with all of them and a JSON file. What is missing
or fails is named with its reason, and the others go on. To continue after an interruption, give the
same command again: what is done is not done again.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.rivals.catalogue import RIVALS
from benchmarks.rivals.page import compared, page
from benchmarks.rivals.systems import Systems, Work
from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.token_cache import default_cache_dir
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import PRESETS
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import locked, make_directory, write_json, write_text
from tf_smoothclir.utils.progress import progress_bar

_PAPER = "paper"
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    "docs/results/rivals",
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
    [name for name in PRESETS if name != _PAPER],
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


def _given_runs() -> dict[str, Path]:
    """Returns name -> directory of --run_dir.

    Raises:
        InputError: One is not NAME=DIRECTORY, or two have the same name.
    """
    found: dict[str, Path] = {}
    for text in _RUN_DIRS.value:
        name, equals, directory = text.partition("=")
        if not (name and equals and directory) or "/" in name or name in {*found, *RIVALS}:
            reason = "it must be NAME=DIRECTORY, with a name that nothing else has"
            raise input_error(f"--run_dir={text}", reason, "Give each run a name")
        found[name] = Path(directory)
    return found


def main(argv) -> None:
    """Measures all systems and writes the page."""
    del argv
    data, given = setting_flags.settings_from_flags("data"), _given_runs()
    output_dir = make_directory(_OUTPUT_DIR.value, "--output_dir")
    source = source_of(data)
    cache = Path(data.cache_dir or default_cache_dir())
    directory = make_directory(_WORK_DIR.value or cache / "rivals" / source.name, "--work_dir")
    work = Work(data, directory.resolve(), source.fingerprint(), _LATENCY_QUERIES.value)
    work.retrieval_set()  # its defects are shown before anything is measured
    presets = [] if given else _PRESETS.value
    remedy = "Wait until it ends, or choose another directory"
    systems = Systems(work)
    with (
        locked(
            directory / ".lock", f"--work_dir={directory}", "another process works there", remedy
        ),
        progress_bar(len(presets) + len(given) + len(_RIVALS.value), "Measure", "systems") as bar,
    ):
        for preset in presets:
            systems.add_preset(preset)
            bar.update()
        for name, run_dir in given.items():
            systems.add_run(name, name, run_dir)
            bar.update()
        for name in _RIVALS.value:
            systems.add_rival(name)
            bar.update()
    if not systems.done:
        raise input_error(source.name, "no system could be measured", "See the reasons above")
    _write(output_dir, source.name, data, systems)


def _write(output_dir: Path, name: str, data: DataSettings, systems: Systems) -> None:
    """Writes the page and the JSON file of a set."""
    found, machine = compared(systems.done), common.machine()
    where = f"--data_dir={Path(data.data_dir).name} " if data.data_dir else ""
    line = f"python -m benchmarks.rivals {where}--document_language={data.document_language}"
    titles = {
        rival.title: rival.recipe for rival in RIVALS.values() if rival.title in found.systems
    }
    about = f"{machine['processor']}, {machine['cores']} cores, Python"
    text = page(
        found,
        title=name,
        command=line,
        machine=f"{about} {machine['versions']['python']}",
        recipes=titles,
        left_out=systems.left_out,
    )
    content = {"command": line, "machine": machine, "left_out": systems.left_out}
    write_json(output_dir / f"{name}.json", {**content, **found.content()})
    write_text(output_dir / f"{name}.md", text)
    print(f"Page: {output_dir}/{name}.md")


if __name__ == "__main__":
    command.run_main(main, __doc__, ["data"])
