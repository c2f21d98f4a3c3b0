"""Which code makes cells and pages: they are not taken over from other code."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from pathlib import Path

import tf_smoothclir
from tf_smoothclir import papers
from tf_smoothclir.training.run_config import software_versions

# Where the package is installed, these are folders of it; cells do not depend on them.
_BESIDE = ("export", "extras", "papers", "trainers")


@functools.cache
def sources_digest() -> str:
    """The first 12 hexadecimal digits of the SHA-256 of all sources of library and papers."""
    digest = hashlib.sha256()
    for package, beside in ((tf_smoothclir, _BESIDE), (papers, ())):
        root = Path(package.__file__).parent
        tables = root.rglob("*.toml")  # of words and characters
        for path in sorted((*root.rglob("*.py"), *tables)):
            name, content = path.relative_to(root), path.read_bytes()
            if name.parts[0] not in beside:
                where = f"{package.__name__}/{name.as_posix()} {len(content)}\n"
                digest.update(where.encode() + content)
    return digest.hexdigest()[:12]


def code_note() -> str:
    """The version of the code, for a page, with the commit where it is that of a git checkout."""
    note = f"Code: tf_smoothclir {{tf_smoothclir}}, sources {sources_digest()}"
    if _git("ls-files", "--error-unmatch", "__init__.py"):
        note += f", commit {_git('rev-parse', '--short=12', 'HEAD')}"
        note += " with changes" if _git("status", "--porcelain", "--", ":/*.py", ":/*.toml") else ""
    note += "; TensorFlow {tensorflow}, Python {python}; "
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}."
    return note.format(**software_versions()) + machine


def _git(*arguments: str) -> str:
    """What git says of the package; nothing where there is no git, or no checkout."""
    command = ["git", "-C", Path(tf_smoothclir.__file__).parent, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
