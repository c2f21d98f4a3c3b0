"""Errors name flags or arguments; ~ is the home directory in Python too; JSON as dataclasses."""

import dataclasses
import json
from typing import Any

import pytest

import tf_smoothclir as sc
from tests.cases import cases
from tf_smoothclir.data.token_cache import default_cache_dir
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.papers.liu2020.polyglot import convert_polyglot
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.utils import paths, records
from tf_smoothclir.utils.errors import InputError, name_flags

USES = {
    "load": sc.load,
    "compare": lambda path: sc.compare(path, "other", qrels="~/qrels"),
    "train": lambda path: sc.train(path),
    "Encoder": lambda path: Encoder(path, "query"),
    "documents": lambda path: open_files(path, "--collection"),
    "Polyglot": lambda path: convert_polyglot(path, "out"),
    "output": lambda path: make_directory(f"{path}/file/below", "--output_dir"),
}
WHOLE = {
    "parts": [{"file": "a", "size": 3}, {"file": "b", "size": 0}],
    "cuts": [0.2, 1],
    "hashes": {"a": "00"},
    "settings": {"dim": 64},
    "anything": None,
    "perhaps": {"file": "c", "size": 1},
    "done": True,
}


@pytest.fixture
def in_python():
    name_flags(False)
    yield
    name_flags()


@pytest.mark.usefixtures("in_python")
@cases(
    "of_command, of_python",
    ("--columns=text=a: no. Leave --dim out", "columns=text=a: no. Leave dim out"),
    ("--data_dir=d (--top_k, --index_dir)", "data=d (k, index)"),
    ("run smoothclir-evaluate --run_dir=a --split=b, or --nofull", None),
    ("--normalised or --noverify or --plugin=m", "normalised or --noverify or --plugin=m"),
    ("a--b, x --1 and ---", "a--b, x --1 and ---"),
)
def test_an_error_names_arguments(of_command, of_python):
    if of_python is None:
        of_python = of_command.replace("--nofull", "full=False")
    assert str(InputError(of_command)) == of_python
    assert str(InputError(of_python)) == of_python  # again, as a message in another one
    name_flags()
    assert str(InputError(of_command)) == of_command


@pytest.mark.usefixtures("in_python")
@cases(
    "settings, message",
    ({"columns": {"texts": "body"}}, "^columns=texts=body: there is no such column"),
    ({"passage_words": (1,)}, "^passage_words must be falling numbers"),
    ({"query_language": "1"}, "^query_language="),
)
def test_training_from_python_names_arguments(settings, message):
    with pytest.raises(InputError, match=message):
        sc.train(queries=["a"], documents=["b"], judgments=[("0", "0", 1)], **settings)


@cases("use", *USES.values(), ids=USES)
def test_home_directory_in_python(tmp_path, monkeypatch, use):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises((InputError, OSError), match=rf"{tmp_path}/(there|qrels)"):
        use("~/there")
    assert [path.name for path in tmp_path.glob("**/*")] == ["there", "file"]


def test_paths_that_cannot_be_are_refused(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "~/cache")
    monkeypatch.setenv("HOME", "/anywhere")
    assert str(default_cache_dir()) == "/anywhere/cache/tf_smoothclir"
    assert [paths.local_path(path) for path in ("a/~", DataSettings.data_dir)] == ["a/~", ""]
    with pytest.raises(InputError, match=r"'a\\udcff': the path is not UTF-8"):
        paths.local_path("a\udcff")
    monkeypatch.setattr("os.path.expanduser", str)  # as for a user that the system does not know
    with pytest.raises(InputError, match="~/a: nobody knows the home directory"):
        paths.local_path("~/a")


@dataclasses.dataclass(frozen=True)
class Part:
    file: str
    size: int


@dataclasses.dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    cuts: tuple[float, ...]
    hashes: dict[str, str]
    settings: dict
    anything: Any
    perhaps: Part | None
    done: bool = False


def test_every_field_is_read_and_written_back():
    whole = records.record_from_json(Whole, {**WHOLE, "unknown": 1})
    assert whole.parts == (Part("a", 3), Part("b", 0))
    assert (whole.cuts, whole.hashes, whole.done) == ((0.2, 1), {"a": "00"}, True)
    assert json.loads(json.dumps(dataclasses.asdict(whole))) == WHOLE
    assert whole.perhaps == Part("c", 1)
    assert records.record_from_json(Whole, {**WHOLE, "perhaps": None}).perhaps is None
    without = {key: value for key, value in WHOLE.items() if key != "done"}
    assert records.record_from_json(Whole, without).done is False  # the default


@cases(
    "change, message",
    ({"parts": {}}, r"parts must be a list, not \{\}"),
    ({"parts": [{"file": "a", "size": "3"}]}, r"parts\[0\]\.size must be an integer, not '3'"),
    ({"perhaps": {"file": "a", "size": True}}, "perhaps.size must be an integer, not True"),
    ({"perhaps": {"file": "a", "size": 3.0}}, r"perhaps.size must be an integer, not 3\.0"),
    ({"parts": [{"file": "a"}]}, r"parts\[0\]\.size is missing"),
    ({"parts": ["a"]}, r"parts\[0\] must be an object, not 'a'"),
    ({"cuts": [0.2, None]}, r"cuts\[1\] must be a number, not None"),
    ({"hashes": {"a": 0}}, r"hashes\.a must be a string, not 0"),
    ({"settings": []}, r"settings must be an object, not \[\]"),
    ({"perhaps": []}, r"perhaps must be an object, not \[\]"),
    ({"done": 1}, "done must be true or false, not 1"),
    ({"done": "x" * 99}, r"done must be true or false, not 'x{39}\.\.\.$"),
)
def test_value_of_another_type_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        records.record_from_json(Whole, {**WHOLE, **change})


@cases("value", None, [], 3, "x")
def test_what_is_no_object_is_named(value):
    with pytest.raises(ValueError, match="the content must be an object, not"):
        records.record_from_json(Whole, value)
