"""Runs smoothclir-train and sends itself a signal: `stopped_train.py PLACE SIGNAL FLAGS...`.

PLACE is `step:5` (after the fifth step of this process), `best` (between the best weights and the
checkpoint), `validation` or `evaluation` (in the middle of it).
"""

import itertools
import os
import sys

from trainers.train import run


def main() -> None:
    """Patches the place to send the signal, and runs the command."""
    place, number = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    place, _, at_call = place.partition(":")

    from tf_smoothclir.evaluation import evaluate
    from tf_smoothclir.training import checkpoints, monitor, trainer
    from tf_smoothclir.two_tower.scorer import DenseRetriever

    trainer.STEPS_PER_CALL = 1
    owner, name = {
        "step": (monitor.StepMonitor, "after_steps"),
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
