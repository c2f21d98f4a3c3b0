"""Runs smoothclir-train, and says at the end of training what weights this worker has come to."""

import logging

from tf_smoothclir._compat.quiet import load_tensorflow
from trainers.train import run


def main() -> None:
    """Runs the command."""
    # Imported before the command has set up its log, TensorFlow would say more.
    logging.getLogger("tensorflow").setLevel(logging.WARNING)
    load_tensorflow()
    from tf_smoothclir.training.checkpoints import state_of
    from tf_smoothclir.training.trainer import Trainer
    from tf_smoothclir.training.workers import digest_of

    original = Trainer.train

    def train(trainer):
        progress = original(trainer)
        state = state_of(trainer.model)
        print("Digest:", digest_of("", [*state.weights, *state.optimizer]).hex())
        return progress

    Trainer.train = train
    run()


if __name__ == "__main__":
    main()
