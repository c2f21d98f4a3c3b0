"""Commands whose output people read; `test_plugins` goes the whole way, command by command."""

import json

import pytest

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
