"""Runs smoothclir-train and sends itself a signal: `stopped_train.py PLACE SIGNAL FLAGS...`.

PLACE is `step:5` (after the fifth step of this process), `best` (between the best weights and the
checkpoint), `validation` or `evaluation` (in the middle of it).
"""

import os
import sys

from trainers.train import run


def main() -> None:
    """Patches the place to send the signal, and runs the command."""
    place, number = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    name, _, step = place.partition(":")

    def stop() -> None:
        os.kill(os.getpid(), number)

    from tf_smoothclir.evaluation import evaluate
    from tf_smoothclir.training import checkpoints, monitor, trainer
    from tf_smoothclir.two_tower.scorer import DenseRetriever

    if name == "step":
        trainer.STEPS_PER_CALL = 1
        patch(monitor.StepMonitor, "after_steps", stop, int(step))
    elif name == "best":
        patch(checkpoints.BestWeights, "save", stop)
    elif name == "validation":
        patch(DenseRetriever, "score", stop)
    else:
        patch(evaluate, "evaluate_split", stop)
    run()


def patch(owner, name: str, stop, at_call: int = 1) -> None:
    """Calls `stop` after a call of `owner.name`."""
    original, calls = getattr(owner, name), []

    def patched(*arguments, **keywords):
        result = original(*arguments, **keywords)
        calls.append(name)
        if len(calls) == at_call:
            stop()
        return result

    setattr(owner, name, patched)


if __name__ == "__main__":
    main()
