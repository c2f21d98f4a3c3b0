"""A run that is killed repeatedly ends with the same bits as an undisturbed one.

The real command runs in real processes on one run directory: each stop of `STOPS` ends a process,
and the next process gets the same command. As a program, `PLACE SIGNAL FLAGS...`, it trains and
sends itself a signal: after a step of its process (`step:5`), between the best weights and the
checkpoint (`best`), or in the middle of the `validation` or the `evaluation`.
"""

import itertools
import json
import os
import signal
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.training.saved_states import BEST, SavedStates

STOPS = (
    ("step:3", signal.SIGKILL),
    ("best", signal.SIGKILL),
    ("step:4", signal.SIGTERM),  # in the second epoch
    ("validation", signal.SIGINT),
    ("evaluation", signal.SIGKILL),
)
FLAGS = ["--dim=4", "--negatives=3", "--batch_size=8", "--epochs=2", "--learning_rate=0.1"]
FLAGS += ["--fresh_negatives", "--position_weights=learned", "--checkpoint_minutes=0"]
FLAGS.append("--preset=fast")


def tensors(path):
    """All numbers of a checkpoint except the number of checkpoints."""
    reader = tf.train.load_checkpoint(str(path))
    return {
        name: reader.get_tensor(name)
        for name, dtype in reader.get_variable_to_dtype_map().items()
        if dtype != tf.string and "save_counter" not in name
    }


def results(run):
    """The best weights, the metrics without what was measured, and the rankings of a run."""
    states = SavedStates(run / "checkpoints", BEST)
    metrics = json.loads((run / "metrics.json").read_text())
    for measured in ("pairs_per_second", "seconds", "peak_rss_mb"):
        del metrics["training"][measured]
    rankings = [path.read_bytes() for path in sorted((run / "evaluation").rglob("*run.trec"))]
    return tensors(states.prefix(states.latest())), metrics, rankings


@pytest.mark.slow
def test_a_run_that_is_stopped_everywhere_is_an_undisturbed_one(commands, tiny_dir, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    flags = [*FLAGS, f"--data_dir={tiny_dir}", f"--cache_dir={tmp_path}/cache"]
    commands.run("trainers.train", *flags, f"--output_dir={whole}", check=True)
    flags.append(f"--output_dir={stopped}")
    messages = []
    for place, number in STOPS:
        end = commands.run("tests.training.test_resume", place, int(number), *flags)
        killed = number == signal.SIGKILL
        assert end.returncode == (-number if killed else 128 + number), end.stderr
        assert not (stopped / "metrics.json").exists()
        if not killed:
            assert f"{number.name}: stopped after epoch " in end.stderr
            assert f"saved in {stopped}. Give the same command again" in end.stderr
            assert "Traceback" not in end.stderr
        lines = end.stderr.splitlines()
        messages.append([line for line in lines if line.startswith(("Continuing", "Epoch"))])
    commands.run("trainers.train", *flags, check=True)
    # Killed after its third step, which is saved before the signal.
    assert messages[:2] == [[], ["Continuing after epoch 0, step 3"]]
    assert messages[2][0] == "Continuing after epoch 0, step 8"
    assert messages[2][1].startswith("Epoch 1/2: loss")

    (expected, *others), (found, *others_found) = map(results, (whole, stopped))
    # They would not be the same without the optimizer's state: the first kill is in epoch 1.
    assert found.keys() == expected.keys()
    assert len(found) >= 2  # both tables
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert others_found == others
    metrics, rankings = others
    assert [record["epoch"] for record in metrics["history"]] == [1, 2]
    assert metrics["training"]["pairs"] == 2 * 60
    assert len(rankings) == 4


def main() -> None:
    """Patches the place to send the signal, and runs the command."""
    place, number = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    place, _, at_call = place.partition(":")
    from tf_smoothclir.evaluation import evaluate
    from tf_smoothclir.training import checkpoints, steps, trainer
    from tf_smoothclir.two_tower.scorer import DenseRetriever
    from trainers.train import run

    trainer.STEPS_PER_CALL = 1
    owner, name = {
        "step": (steps.StepMonitor, "after_steps"),
        "best": (checkpoints.BestWeights, "save"),
        "validation": (DenseRetriever, "score"),
        "evaluation": (evaluate, "evaluate_split"),
    }[place]
    original, calls = getattr(owner, name), itertools.count(1)

    def patched(*arguments, **keywords):
        result = original(*arguments, **keywords)
        if next(calls) == int(at_call or 1):
            os.kill(os.getpid(), number)
        return result

    setattr(owner, name, patched)
    run()


if __name__ == "__main__":
    main()
