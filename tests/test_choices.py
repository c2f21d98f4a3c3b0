"""What is chosen: never by the test split, and by the settings that were asked for."""

import re
import shutil

from tensorflow import keras

from tests.training.tiny_set import QUERIES, SPLITS
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import train

TEST_QUERIES = [number for number in range(QUERIES) if SPLITS[number % len(SPLITS)] == "test"]


def with_rubbish_for(queries, data):
    """Each of some queries is judged for other documents: its ids and those of all texts stay."""
    lines = [line.split("\t") for line in (data / "en2fr.rel").read_text().splitlines()]
    documents = sorted({document for _, document, _ in lines}, reverse=True)
    others = dict(zip(sorted(documents), documents))
    rubbish = set(map(str, queries))
    for line in lines:
        line[1] = others[line[1]] if line[0] in rubbish else line[1]
    (data / "en2fr.rel").write_text("".join("\t".join(line) + "\n" for line in lines))
    return data


def learned_files(path):
    """Path -> content of all that a run learned and chose; seconds, which vary, are left out."""
    run = RunDirectory.load(path)
    learned = [run.vocabulary, run.lexical, run.reranker, run.pseudo_queries, run.checkpoints]
    files = [file for folder in learned for file in folder.rglob("*") if file.is_file()]
    kept = {}
    for file in [*files, run.fusion, run.cut_points]:
        content = file.read_bytes()
        if file.suffix == ".json":
            content = re.sub(rb'"(seconds|modified|digest|mtime\w*)": [^,}]*', b"", content)
        if "manifest" not in file.name and "progress" not in file.name:
            kept[str(file.relative_to(path))] = content
    return kept


def test_nothing_is_chosen_by_the_test_split(tiny, tiny_dir, tmp_path):
    """Hazard: a choice that reads the test split makes every figure too good."""
    rubbish = with_rubbish_for(TEST_QUERIES, shutil.copytree(tiny_dir, tmp_path / "data"))
    settings = {"retriever": "hybrid", "reranker": "late_interaction", "rerank_depth": 8}
    settings |= {"batching": "in_batch", "hard_negatives": 2, "pseudo_queries": 18}
    metrics = {}
    for name, data in (("true", tiny_dir), ("rubbish", rubbish)):
        keras.backend.clear_session()  # checkpoints hold the names that Keras counts in a process
        metrics[name] = train(tiny(data, **settings), tmp_path / name)
    true, other = (learned_files(tmp_path / name) for name in metrics)
    assert {name for name in true if true[name] != other.get(name)} == set()
    assert true.keys() == other.keys()
    folders = {name.split("/")[0] for name in true}
    assert {"lexical", "reranker", "checkpoints", "pseudo_queries"} <= folders
    assert metrics["true"]["validation"] == metrics["rubbish"]["validation"]
    assert metrics["true"]["test"] != metrics["rubbish"]["test"]


def test_the_paper_trains_on_as_many_queries_as_it_says():
    assert preset_settings("paper").data.max_queries == 25_000  # of each language: Table 1
