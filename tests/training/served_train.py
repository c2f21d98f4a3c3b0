"""Runs smoothclir-train, and says at the end of training which server has which rows."""

import logging

from tf_smoothclir._compat.quiet import load_tensorflow
from trainers.train import run


def main() -> None:
    """Runs the command."""
    # Imported before the command has set up its log, TensorFlow would say more.
    logging.getLogger("tensorflow").setLevel(logging.WARNING)
    load_tensorflow()
    from tf_smoothclir.training.trainer import Trainer

    original = Trainer.train

    def train(trainer):
        progress = original(trainer)
        for tower in (trainer.model.query_tower, trainer.model.document_tower):
            for part in tower.embeddings.variables:
                print(f"Rows of {tower.name}: {part.shape[0]} on {part.device}")
        return progress

    Trainer.train = train
    run()


if __name__ == "__main__":
    main()
