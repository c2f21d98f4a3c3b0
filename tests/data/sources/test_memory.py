"""A set in memory: the same as the files that it is written to."""

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.data.sources.memory import MemorySource, write_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Judgment, Text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

QUERIES = [Text("q1", "", "red"), Text("q2", "", "\nblue\t")]
DOCUMENTS = [Text("d1", "Rouge", "rouge", "fr"), Text("d2", "", "blau")]
JUDGMENTS = [Judgment("q1", "d1", 2), Judgment("q2", "d2", 1)]


def records(source):
    streams = source.queries(), source.documents(), source.judgments(), source.training.queries()
    return [*map(list, streams), source.splits(), source.fingerprint()]


@cases("splits", None, {"q1": "train", "q2": "test"})
@cases(
    "settings", {}, {"document_language": "de"}, {"query_language": "en", "columns": "text=body"}
)
def test_files_have_its_records_languages_splits_and_fingerprint(tmp_path, settings, splits):
    codes = [settings.get(f"{role}_language", "") for role in ("query", "document")]
    source = MemorySource(QUERIES, DOCUMENTS, JUDGMENTS, splits, *codes)
    source.others = [{"year": np.int64(2021)}, {"year": None}]
    source.columns = {"text": "body"} if "columns" in settings else {}
    source.keep(tmp_path / "data", overwrite=False)
    named = DataSettings(data_dir=str(tmp_path / "data"), **settings)
    assert records(source_of(named, source)) == records(source_of(named))


def test_what_is_missing_in_pandas_is_missing_in_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    source = MemorySource(QUERIES, [Text("d1", "", "rouge"), DOCUMENTS[1]], JUDGMENTS)
    years = pandas.DataFrame({"year": pandas.array([2021, None], dtype="Int64")})
    years["day"] = pandas.to_datetime(["2021-05-06", None])
    source.others = [{**row, "tags": np.array(["a", "b"])} for row in years.to_dict("records")]
    write_set(source, tmp_path / "data", None)
    found = list(source_of(DataSettings(data_dir=str(tmp_path / "data"))).metadata())
    assert found == [
        {"year": 2021, "day": "2021-05-06 00:00:00", "tags": ["a", "b"]},
        {"year": None, "day": None, "tags": ["a", "b"]},
    ]


def test_files_have_its_sentences(tmp_path):
    source = MemorySource([], DOCUMENTS, [])
    source.is_judged, source.pairs = False, [(1, "red", "rouge"), (2, "blue", "bleu")]
    write_set(source, tmp_path / "data", None)
    assert records(source) == records(source_of(DataSettings(data_dir=str(tmp_path / "data"))))


def test_another_set_is_not_overwritten_unless_it_may_be(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "of_mine.txt").write_text("mine")
    source = MemorySource(QUERIES, DOCUMENTS, JUDGMENTS)
    with pytest.raises(InputError, match="it holds other data"):
        source.keep(directory, overwrite=False)
    assert [path.name for path in directory.iterdir()] == ["of_mine.txt"]
    source.keep(directory, overwrite=True)
    assert (directory / "queries.jsonl").is_file()
