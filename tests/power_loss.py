"""What is on a disk when the power goes, at every moment of some code: the model of ALICE.

Pillai et al., All File Systems Are Not Created Equal (OSDI 2014). A file system may lose whatever
was not flushed. Two extremes are tried at each moment: all changes of names are on disk but only
flushed contents (a journal that writes names first), and nothing is on disk but flushed contents
under flushed names.
"""

import contextlib
import os
from pathlib import Path

from tf_smoothclir.storage import files

_CHANGES = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir")


class PowerLoss:
    """A context manager that watches a directory.

    Attributes:
        disks: The different disks that a loss of power could leave, oldest first: relative path ->
            content, None for a directory.
        lasting: The one of them that is left at least once the code has returned.
    """

    def __init__(self, root, monkeypatch):
        self.root, self.disks = Path(root), []
        self._stack, self._monkeypatch = contextlib.ExitStack(), monkeypatch
        self._kept = {}  # inode -> what is flushed of it: a list of one content, or of names

    def __enter__(self):
        for path in (self.root, *self.root.rglob("*")):
            self._flush(path)  # what is there before has been on disk for long
        self._note()
        patch = self._stack.enter_context(self._monkeypatch.context())
        fsync = os.fsync

        def flushed(descriptor):
            fsync(descriptor)
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if self._is_inside(path):
                self._flush(path)
                self._note()

        patch.setattr(os, "fsync", flushed)
        for name in _CHANGES:
            patch.setattr(os, name, self._noting(name, getattr(os, name)))
        patch.setattr(files, "exchange", self._noting("exchange", files.exchange))
        return self

    def __exit__(self, *error):
        self.lasting = self._note()
        self._stack.close()

    def _noting(self, name, change):
        def noted(*arguments, dir_fd=None, **keywords):
            if dir_fd is not None:
                keywords["dir_fd"] = dir_fd
            result = change(*arguments, **keywords)
            path = Path(os.fspath(arguments[name in ("rename", "replace", "exchange")]))
            if dir_fd is not None:
                path = Path(os.readlink(f"/proc/self/fd/{dir_fd}")) / path
            if self._is_inside(path):
                self._note()
            return result

        return noted

    def _is_inside(self, path):
        return path == self.root or self.root in path.parents

    def _entry(self, path):
        """What is flushed of a file or directory, an object that stays the same when it moves."""
        status = path.lstat()
        return self._kept.setdefault(status.st_ino, [None])

    def _flush(self, path):
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir():
                names = {
                    child.name: (child.is_dir(), self._entry(child)) for child in path.iterdir()
                }
                self._entry(path)[0] = names
            else:
                self._entry(path)[0] = path.read_bytes()

    def _note(self):
        there, names = {}, {}
        for path in (self.root, *sorted(self.root.rglob("*"))):
            with contextlib.suppress(FileNotFoundError):
                entry = self._entry(path)
                there[path.lstat().st_ino] = entry
                if path != self.root:
                    content = None if path.is_dir() else entry[0] or b""
                    names[path.relative_to(self.root).as_posix()] = content
        self._kept = there  # inodes of deleted files come back as other files
        flushed = {}
        _unfold(self._kept[self.root.lstat().st_ino], "", flushed)
        for disk in (names, flushed):
            if disk not in self.disks[-4:]:
                self.disks.append(disk)
        return flushed


def _unfold(entry, prefix, found):
    for name, (is_directory, child) in (entry[0] or {}).items():
        path = prefix + name
        found[path] = None if is_directory else child[0] or b""
        if is_directory:
            _unfold(child, f"{path}/", found)


def write_disk(disk, directory):
    """Writes one of `PowerLoss.disks` to a new directory, and returns it."""
    directory.mkdir(parents=True)
    for name, content in sorted(disk.items()):
        if content is None:
            (directory / name).mkdir(parents=True, exist_ok=True)
        else:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
    return directory
