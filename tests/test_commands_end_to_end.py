"""Train, evaluate, export, search on a small toy world, as a person would, command by command."""

import json
import re

import pytest

from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.settings.training import METRICS

ENTITIES = 300
TOY = [f"--toy_entities={ENTITIES}"]
FULL = [f"full/{name}" for name in ("MRR@10", "Recall@1", "Recall@10", "Recall@100")]


@pytest.fixture(scope="module")
def run(commands):
    """Runs a command, which must succeed."""

    def run_command(module, *arguments, **options):
        done = commands.run(module, *arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    return run_command


@pytest.fixture(scope="module")
def work_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("end_to_end")


@pytest.fixture(scope="module")
def run_dir(run, work_dir):
    """A finished run."""
    run(
        "trainers.train",
        *TOY,
        f"--output_dir={work_dir / 'run'}",
        f"--cache_dir={work_dir / 'cache'}",
        "--dim=16",
        "--epochs=2",
        "--negatives=5",
    )
    return work_dir / "run"


@pytest.fixture(scope="module")
def evaluated(run, work_dir, run_dir):
    """What `evaluate` printed and wrote."""
    arguments = [f"--run_dir={run_dir}", f"--output_dir={work_dir / 'evaluated'}"]
    done = run("trainers.evaluate", *arguments, "--split=validation", "--split=test")
    return done.stdout, json.loads((work_dir / "evaluated" / "metrics.json").read_text())


@pytest.fixture(scope="module")
def export_dir(run, work_dir, run_dir):
    """The exported towers."""
    done = run("export.export", f"--run_dir={run_dir}", f"--export_dir={work_dir / 'export'}")
    assert done.stdout.splitlines() == [
        f"{work_dir}/export/document_tower/1",
        f"{work_dir}/export/search/1",
        f"{work_dir}/export/query_tower/1",
        f"{work_dir}/export/model_card-1.md",
    ]
    return work_dir / "export"


def test_metrics_json_has_the_promised_structure(run_dir):
    result = json.loads((run_dir / "metrics.json").read_text())
    for split in ("test", "validation"):
        assert list(result[split]) == [*METRICS, *FULL]
        assert all(0 <= value <= 1 for value in result[split].values())
        assert result["counts"][split]["P_mr@1"] == ENTITIES // 5
        assert set(result["intervals"][split]) == {*METRICS, *FULL}
    assert {"pairs_per_second", "seconds", "peak_rss_mb"} <= result["training"].keys()
    assert "hash of the document id" in result["rules"]["ties"]
    assert result["history"][1]["loss"] < result["history"][0]["loss"]


def test_report_refers_to_plots_that_are_there(run_dir):
    plots = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (run_dir / "report.md").read_text())
    assert len(plots) == 4
    assert all((run_dir / plot).is_file() for plot in plots)


def test_evaluate_gives_the_metrics_of_the_run_again(run_dir, evaluated):
    printed, found = evaluated
    expected = json.loads((run_dir / "metrics.json").read_text())
    for part in ("test", "validation", "intervals", "counts", "confusion", "rules"):
        assert found[part] == expected[part]
    for name in (*METRICS, *FULL):
        assert f"| {name} | {expected['validation'][name]:.4f} (" in printed


def test_search_answers_in_json_from_arguments_and_from_standard_input(run, run_dir, export_dir):
    cuts = json.loads((run_dir / "grades.json").read_text())["retrievers"]["dense"]
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
    assert (unknown["query"], unknown["evidence"], unknown["results"]) == (
        "caf\ufffd",
        "nothing",
        [],
    )
    assert (known["query"], known["evidence"]) == ("a river caf\ufffd", "words")
    assert len(known["results"]) == 1


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
