"""Measuring all systems on one retrieval set, and writing its page."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import common
from benchmarks.rivals.catalogue import RIVALS
from benchmarks.rivals.page import compared, page
from benchmarks.rivals.systems import Systems, Work
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.token_cache import default_cache_dir
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import locked, make_directory, write_json, write_text
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.progress import progress_bar

_THREADS = "OMP_NUM_THREADS"  # of PyTorch, where it is set


def given_runs(texts: Sequence[str]) -> dict[str, Path]:
    """Name -> directory of the values of --run_dir."""
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, directory = text.partition("=")
        if not (name and equals and directory) or "/" in name or name in {*found, *RIVALS}:
            reason = "it must be NAME=DIRECTORY, with a name that nothing else has"
            raise input_error(f"--run_dir={text}", reason, "Give each run a name")
        found[name] = Path(directory)
    return found


def measure_set(
    data: DataSettings,
    *,
    rivals: Sequence[str],
    presets: Sequence[str],
    runs: Mapping[str, Path],
    work_dir: str,
    output_dir: str,
    latency_queries: int,
    choices: Sequence[str] = (),
) -> None:
    """Measures all systems on a set and writes `<set>.md` and `<set>.json`."""
    output = make_directory(output_dir, "--output_dir")
    source = source_of(data)
    cache = Path(data.cache_dir or default_cache_dir())
    directory = make_directory(work_dir or cache / "rivals" / source.name, "--work_dir")
    work = Work(data, directory.resolve(), source.fingerprint(), latency_queries)
    work.retrieval_set()  # its defects are shown before anything is measured
    remedy = "Wait until it ends, or choose another directory"
    where, reason = f"--work_dir={directory}", "another process works there"
    trained = [] if runs else presets
    systems = Systems(work)
    with (
        locked(directory / ".lock", where, reason, remedy),
        progress_bar(len(trained) + len(runs) + len(rivals), "Measure", "systems") as bar,
    ):
        for preset in trained:
            systems.add_preset(preset)
            bar.update()
        for name, run_dir in runs.items():
            systems.add_run(name, name, run_dir)
            bar.update()
        for name in rivals:
            systems.add_rival(name)
            bar.update()
    if not systems.done:
        raise input_error(source.name, "no system could be measured", "See the reasons above")
    _write(output, source.name, _command(data, runs, choices), systems)


def _command(data: DataSettings, runs: Mapping[str, Path], choices: Sequence[str]) -> str:
    """The command as a reader can give it: without the paths of this machine."""
    parts = [f"{_THREADS}={os.environ[_THREADS]}"] if _THREADS in os.environ else []
    parts += ["python -m benchmarks.rivals"]
    if data.data_dir:
        parts.append(f"--data_dir={Path(data.data_dir).name}")
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        if value != field.default and field.metadata["has_effect"]:
            parts.append(f"--{field.name}={value_text(value)}")
    return " ".join([*parts, *choices, *(f"--run_dir={name}=..." for name in runs)])


def _write(output_dir: Path, name: str, command: str, systems: Systems) -> None:
    found, machine = compared(systems.done), common.machine()
    recipes = {
        rival.title: rival.recipe for rival in RIVALS.values() if rival.title in found.systems
    }
    about = f"{machine['processor']}, {machine['cores']} cores, Python"
    text = page(
        found,
        title=name,
        command=command,
        machine=f"{about} {machine['versions']['python']}",
        recipes=recipes,
        left_out=systems.left_out,
    )
    content = {"command": command, "machine": machine, "left_out": systems.left_out}
    write_json(output_dir / f"{name}.json", {**content, **found.content()})
    write_text(output_dir / f"{name}.md", text)
    print(f"Page: {output_dir}/{name}.md")
