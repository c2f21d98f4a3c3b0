"""Runs smoothclir-train, and says at the end of training which server has which rows."""

from tests.training.distributed.worker_processes import load_quietly
from trainers.train import run


def main() -> None:
    """Runs the command."""
    load_quietly()
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
