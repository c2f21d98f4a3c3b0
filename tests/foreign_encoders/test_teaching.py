"""A foreign encoder as a teacher, and measured as it is."""

import json

import numpy as np
import pytest

import tf_smoothclir as sc
from tests.data.sources.test_toy_world import mates
from tests.foreign_encoders import stand_in
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import memory, toy_world, user_files
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.foreign_encoders import python_encoders, teaching
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.lexical.learning import TableLearner
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.settings import data, presets
from tf_smoothclir.training.run_directory import RunDirectory

DIM, SEED = 64, 13
RIGHT = 0.6  # of the first hits of the teacher


class Log(toy_world.ToyWorld):
    """The toy world without the judgments of its queries, but for some."""

    def __init__(self, judged=frozenset()):
        super().__init__("fr", "en", 300, 13)
        self.judged = judged

    def judgments(self):
        return (one for one in super().judgments() if one.query_id in self.judged)


@pytest.fixture(scope="module")
def world():
    return toy_world.ToyWorld("fr", "en", 300, 13)


def teacher_of(world):
    """Vectors that put a share of the queries nearest to its mate, the others to any document."""
    random, mate = np.random.default_rng(13), mates(world)
    queries, ids = list(world.queries()), [text.id for text in world.documents()]
    documents = random.normal(size=(len(ids), DIM)).astype(np.float32)
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    rows = [
        ids.index(mate[text.id]) if random.random() < RIGHT else random.integers(len(ids))
        for text in queries
    ]
    return EncodedSet("teacher", documents[rows], documents)


def test_a_table_that_learned_from_the_teacher_is_right_where_the_teacher_is_not(world, tmp_path):
    found, number = teaching.taught(Log(), teacher_of(world), SEED)
    assert number == 300
    labels = {j.query_id: j.document_id for j in found.judgments()}
    assert labels.keys() == {text.id for text in world.queries()}
    share = np.mean([labels[query] == document for query, document in mates(world).items()])
    assert share == pytest.approx(RIGHT, abs=0.05)
    text = presets.preset_settings("lexical").text
    retrieval_set = RetrievalSet.load(found, num_grades=2)
    texts = LexicalTexts(tokenize_set(retrieval_set, text, str(tmp_path)), text.max_query_tokens)
    retriever = texts.retriever(TableLearner(texts, seed=SEED).model())
    first = retriever.scores(np.arange(len(retrieval_set.query_ids))).argmax(axis=1)
    hits = [retrieval_set.document_ids[row] for row in first]
    right = dict(zip(retrieval_set.query_ids, hits)).items() & mates(world).items()
    assert len(right) > (share + 0.05) * len(hits)
    splits = [found.splits()[query] for query in labels]
    assert splits.count("validation") == int(0.2 * len(splits))
    assert "test" not in splits


def test_what_people_judged_stays_and_alone_is_tested(world):
    source = Log(frozenset(text.id for text in list(world.queries())[:10]))
    found, _ = teaching.taught(source, teacher_of(world), SEED)
    judgments = list(found.judgments())
    real = list(source.judgments())
    assert judgments[: len(real)] == real
    assert not {j.query_id for j in judgments[len(real) :]} & source.judged
    tested = {query for query, split in found.splits().items() if split == "test"}
    assert set() < tested < source.judged
    assert {j.grade for j in judgments[len(real) :]} == {max(j.grade for j in real)}


def test_a_query_that_stands_in_a_log_again_trains_or_validates():
    texts = [Text(str(row), "", f"{'wW'[row % 2]}ord {row // 5}") for row in range(500)]
    log = memory.MemorySource(texts, [Text("d", "", "mot"), Text("e", "", "mots")], [])
    vectors = np.ones((500, DIM), np.float32), np.ones((2, DIM), np.float32)
    found, _ = teaching.taught(log, EncodedSet("teacher", *vectors), 13)
    splits = {}
    for text in texts:
        splits.setdefault(text.text.lower(), set()).add(found.splits()[text.id])
    assert sorted(map(sorted, splits.values())) == [["train"]] * 80 + [["validation"]] * 20


def test_a_label_weighs_more_the_further_its_first_hit_is_ahead():
    documents = [Text(f"d{n}", "", f"text {n}") for n in range(3)]
    queries = [Text(f"q{n}", "", f"query {n}") for n in range(4)]
    scores = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.0], [0.0, 0.25, 0.5], [0.0, 0.5, 0.75]]
    encoded = EncodedSet("teacher", np.array(scores, np.float32), np.eye(3, dtype=np.float32))
    judged, _ = teaching.taught(memory.MemorySource(queries, documents, []), encoded, SEED)
    found = list(judged.judgments())
    assert [judgment.document_id for judgment in found] == ["d0", "d1", "d2", "d2"]
    # Margins of 0.5 and three times 0.25: ranks of 3.5 and, in the middle of three, 1.5 of 4.
    assert [judgment.weight for judgment in found] == [0.5 + 3.5 / 4, *[0.5 + 1.5 / 4] * 3]
    one_document = EncodedSet("teacher", np.ones((4, 1), np.float32), np.ones((1, 1), np.float32))
    judged, _ = teaching.taught(memory.MemorySource(queries, documents[:1], []), one_document, SEED)
    weights = [judgment.weight for judgment in judged.judgments()]
    assert weights == [1.0] * 4  # there is no second hit
    nothing = EncodedSet("teacher", encoded.queries, 0 * encoded.documents)
    with pytest.raises(sc.InputError, match="or of all documents, are zero"):
        teaching.taught(memory.MemorySource(queries, documents, []), nothing, SEED)


def test_a_taught_set_keeps_what_documents_have_besides_text(tmp_path):
    texts = [Text(f"x{n}", "", f"text {n}") for n in range(3)]
    log = memory.MemorySource(texts, texts, [])
    log.others = [{"year": 2000 + n} for n in range(3)]
    encoded = EncodedSet("teacher", *[np.eye(3, dtype=np.float32)] * 2)
    judged, _ = teaching.taught(log, encoded, SEED)
    memory.write_set(judged, tmp_path / "set", judged.splits())
    assert list(user_files.UserDirectory(tmp_path / "set").metadata()) == log.others


def test_a_set_without_unjudged_queries_has_nothing_to_teach(world):
    with pytest.raises(sc.InputError, match="nothing to teach"):
        teaching.taught(world, teacher_of(world), SEED)


def test_a_log_becomes_an_exported_model_without_test_figures(world, commands, tmp_path):
    """One command leads from the log to a model that needs no encoder."""
    log, taught_set, run = tmp_path / "log", tmp_path / "taught", tmp_path / "run"
    memory.write_set(Log(), log, None)
    (log / "judgments.jsonl").unlink()
    vectors = teacher_of(world)
    ids = [[text.id for text in texts] for texts in (world.queries(), world.documents())]
    names = "query_ids", "document_ids", "queries", "documents"
    arrays = [*ids, vectors.queries, vectors.documents]
    np.savez(tmp_path / "teacher.npz", **dict(zip(names, arrays)))
    given = f"--data_dir={log}", f"--encoder={tmp_path}/teacher.npz", f"--output_dir={taught_set}"
    given = *given, f"--run_dir={run}", "--preset=lexical", f"--cache_dir={tmp_path}/cache"
    done = commands.run("trainers.teach", *given, check=True)
    assert "teacher judged 300 queries" in done.stdout
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["test"] == {}  # nobody judged what it would be measured by
    assert metrics["validation"]["full/MRR@10"] > 0.3
    assert RunDirectory.load(run).settings().retrieval.retriever == "lexical"
    (tmp_path / "teacher.npz").unlink()
    assert len(sc.load(run).search(["a small city"], k=3)[0]) == 3
    assert (run / "lexical_model" / "1").is_dir()
    np.savez(tmp_path / "teacher.npz", **dict(zip(names, arrays)))
    commands.run("trainers.teach", *given, check=True)  # as after an interruption
    assert (run / "lexical_model" / "2").is_dir()
    arrays[2] = vectors.queries[::-1]
    np.savez(tmp_path / "teacher.npz", **dict(zip(names, arrays)))
    assert f"{taught_set}: it holds other data" in commands.run("trainers.teach", *given).stderr
    distilled = tmp_path / "distilled"
    replaced = "--encoder=tests.foreign_encoders.stand_in:encode", f"--run_dir={distilled}"
    replaced = *replaced, f"--output_dir={tmp_path}/by_stand_in", "--distill"
    commands.run("trainers.teach", *given, *replaced, check=True)
    settings = RunDirectory.load(distilled).settings()
    assert settings.retrieval.retriever == "lexical+encoder"
    assert settings.of(data.EncoderSettings).distill


def test_a_fault_in_documents_is_found_before_queries_are_encoded(tmp_path):
    class Faulty(Log):
        def documents(self):
            raise sc.InputError("a fault")

    def encode(texts):
        raise AssertionError("it was asked")

    with pytest.raises(sc.InputError, match="a fault"):
        EncodedSet.of(python_encoders.PythonEncoder(encode), Faulty(), str(tmp_path))


def test_python_teaches_and_trains(world):
    both = world.queries(), world.documents()
    queries, documents = ({text.id: text.text for text in texts} for texts in both)
    judged = [j for j in world.judgments() if int(j.query_id[1:]) % 10 == 0]
    found = sc.teach(queries, documents, judgments=judged, encoder=stand_in.encode)
    model = sc.train(**found, preset="lexical")
    assert len(model.details["intervals"]["test"])
    assert model.search(["sea"], k=1) is not None


def test_an_encoder_is_evaluated_beside_runs(commands, tmp_path):
    given = ["--encoder=tests.foreign_encoders.stand_in:encode", "--toy_entities=300"]
    given += [f"--cache_dir={tmp_path}/cache", f"--output_dir={tmp_path}/rival"]
    commands.run("trainers.evaluate", *given, check=True)
    assert 0 < json.loads((tmp_path / "rival" / "metrics.json").read_text())["test"]["NDCG@5"] < 1
    assert (tmp_path / "rival" / "test").is_dir()
