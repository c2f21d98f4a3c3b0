"""Train, evaluate, export, search on a small toy world, as a person would, command by command."""

import json

import pytest

from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.settings.training import METRICS

ENTITIES = 300
FULL = [f"full/{name}" for name in ("MRR@10", "Recall@1", "Recall@10", "Recall@100")]


@pytest.fixture(scope="module")
def run(commands):
    """Runs a command, which must succeed."""

    def run(*arguments, **options):
        done = commands.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def work_dir(run, tmp_path_factory):
    """A directory with a finished run."""
    path = tmp_path_factory.mktemp("end_to_end")
    flags = [f"--toy_entities={ENTITIES}", "--dim=16", "--epochs=2", "--negatives=5"]
    run("trainers.train", *flags, f"--output_dir={path / 'run'}", f"--cache_dir={path / 'cache'}")
    return path


@pytest.fixture(scope="module")
def export_dir(run, work_dir):
    """The exported towers."""
    path = work_dir / "export"
    done = run("export.export", f"--run_dir={work_dir / 'run'}", f"--export_dir={path}")
    parts = ("document_tower/1", "search/1", "query_tower/1", "model_card-1.md")
    assert done.stdout.splitlines() == [f"{path}/{part}" for part in parts]
    return path


def test_evaluate_gives_the_metrics_of_the_run_again(run, work_dir, tmp_path):
    metrics = json.loads((work_dir / "run" / "metrics.json").read_text())
    flags = [f"--run_dir={work_dir / 'run'}", f"--output_dir={tmp_path / 'evaluated'}"]
    done = run("trainers.evaluate", *flags, "--split=validation", "--split=test")
    found = json.loads((tmp_path / "evaluated" / "metrics.json").read_text())
    for part in ("test", "validation", "intervals", "counts", "confusion", "rules"):
        assert found[part] == metrics[part]
    for name in (*METRICS, *FULL):
        assert f"| {name} | {metrics['validation'][name]:.4f} (" in done.stdout


def test_search_answers_in_json_from_arguments_and_from_standard_input(run, work_dir, export_dir):
    cuts = json.loads((work_dir / "run" / "grades.json").read_text())["retrievers"]["dense"]
    toy = ToyWorld(entities=ENTITIES)
    documents = {document.id: document for document in toy.documents()}
    queries = [query.text for _, query in zip(range(2), toy.queries())]
    arguments = [f"--export_dir={export_dir}", "--json", "--top_k=3"]
    given = run("export.search", *arguments, *(f"--query={query}" for query in queries))
    typed = run("export.search", *arguments, stdin="\n".join(queries) + "\n")
    assert typed.stdout == given.stdout
    assert "Traceback" not in typed.stderr

    answers = [json.loads(line) for line in given.stdout.splitlines()]
    assert [answer["query"] for answer in answers] == queries
    for answer in answers:
        results = answer["results"]
        assert [result["rank"] for result in results] == [1, 2, 3]
        scores = [result["score"] for result in results]
        assert scores == sorted(scores, reverse=True)
        for result in results:
            document = documents[result["id"]]
            assert (result["title"], result["text"]) == (document.title, document.text)
            by_score = sum(result["score"] > cut for cut in cuts["scores"])
            by_share = sum(result["score"] / scores[0] > cut for cut in cuts["shares"])
            assert result["grade"] == min(by_score, by_share)


def test_search_shows_a_table_to_people(run, export_dir):
    arguments = [f"--export_dir={export_dir}", "--query=a river", "--top_k=2", "--width=40"]
    lines = run("export.search", *arguments).stdout.splitlines()
    assert lines[:2] == ["", "a river"]
    assert lines[2].split() == ["rank", "score", "grade", "id"]
    assert len(lines) == 5
    assert all(len(line.split("  ")[-1]) == 40 and line.endswith("…") for line in lines[3:])


def test_search_accepts_invalid_utf8(run, export_dir):
    typed = "caf\udce9\na river caf\udce9\n"  # the byte 0xE9 of Latin-1
    arguments = [f"--export_dir={export_dir}", "--json", "--top_k=1"]
    lines = run("export.search", *arguments, stdin=typed).stdout.splitlines()
    unknown, known = map(json.loads, lines)
    assert (unknown["query"], unknown["evidence"]) == ("caf\ufffd", "nothing")
    assert (known["query"], known["evidence"]) == ("a river caf\ufffd", "words")
    assert (len(unknown["results"]), len(known["results"])) == (0, 1)


@pytest.mark.slow
def test_quickstart_with_overwrite_searches_by_the_new_towers(run, tmp_path):
    def quickstart(seed, *more):
        """Returns what `smoothclir-quickstart` prints, of one epoch on a small world."""
        small = ["tests.small_quickstart", seed, f"--output_dir={tmp_path / 'run'}"]
        return run(*small, *more).stdout

    first = quickstart(13)
    assert "| NDCG@5 | " in first
    assert quickstart(13) == first
    again = quickstart(14, "--overwrite")
    assert "| NDCG@5 | " in again
    assert again != first
    assert (tmp_path / "run" / "query_tower" / "2").is_dir()
