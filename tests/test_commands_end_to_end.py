"""The commands that people read the output of; `test_plugins` goes the whole way, one by one."""

import json

import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.training import METRICS

FULL = [f"full/{name}" for name in ("MRR@10", "Recall@1", "Recall@10", "Recall@100")]


@pytest.fixture(scope="module")
def run(commands):
    def run(*arguments, **options):
        done = commands.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_evaluate_gives_the_metrics_of_the_run_again(run, tiny_run, tmp_path):
    metrics = json.loads(tiny_run.metrics.read_text())
    flags = [f"--run_dir={tiny_run.path}", f"--output_dir={tmp_path / 'evaluated'}"]
    done = run("trainers.evaluate", *flags, "--split=validation", "--split=test")
    found = json.loads((tmp_path / "evaluated" / "metrics.json").read_text())
    for part in ("test", "validation", "intervals", "counts", "confusion", "rules"):
        assert found[part] == metrics[part]
    for name in (*METRICS, *FULL):
        assert f"| {name} | {metrics['validation'][name]:.4f} (" in done.stdout


@pytest.fixture(scope="module")
def search(run, export_dir, tmp_path_factory):
    """`search(*flags, ...)`: what the command prints; the first one builds an index."""
    flags = [f"--export_dir={export_dir}", f"--index_dir={tmp_path_factory.mktemp('index')}/index"]
    return lambda *more, **options: run("export.search", *flags, *more, **options).stdout


def test_search_answers_in_json_from_arguments_and_from_standard_input(search, tiny_run):
    cuts = json.loads((tiny_run.path / "grades.json").read_text())["retrievers"]["dense"]
    source = source_of(tiny_run.settings().data)
    documents = {document.id: document for document in source.documents()}
    queries = [query.text for _, query in zip(range(2), source.queries())]
    given = search("--json", "--top_k=3", *(f"--query={query}" for query in queries))
    assert search("--json", "--top_k=3", stdin="\n".join(queries) + "\n") == given

    answers = [json.loads(line) for line in given.splitlines()]
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


def test_search_accepts_invalid_utf8(search):
    typed = "caf\udce9\nword1 caf\udce9\n"  # the byte 0xE9 of Latin-1
    unknown, known = map(json.loads, search("--json", "--top_k=1", stdin=typed).splitlines())
    assert (unknown["query"], unknown["evidence"]) == ("caf\ufffd", "nothing")
    assert (known["query"], known["evidence"]) == ("word1 caf\ufffd", "words")
    assert (len(unknown["results"]), len(known["results"])) == (0, 1)


@pytest.mark.slow
def test_quickstart_with_overwrite_searches_by_the_new_towers(run, tmp_path):
    def quickstart(seed, *more):
        small = ["tests.small_quickstart", seed, f"--output_dir={tmp_path / 'run'}"]
        return run(*small, *more).stdout

    first = quickstart(13)
    assert "| NDCG@5 | " in first
    assert quickstart(13) == first
    again = quickstart(14, "--overwrite")
    assert "| NDCG@5 | " in again
    assert again != first
    assert (tmp_path / "run" / "query_tower" / "2").is_dir()
