"""Runs smoothclir-train, and prints a digest of the weights of this worker after training."""

from tests.extras.distributed.worker_processes import load_quietly
from trainers.train import run


def main() -> None:
    """Runs the command."""
    load_quietly()
    from tf_smoothclir.extras.distributed.workers import digest_of
    from tf_smoothclir.training.trainer import Trainer

    original = Trainer.train

    def train(trainer):
        progress = original(trainer)
        variables = trainer.task.variables
        print("Digest:", digest_of("", [*variables.weights, *variables.optimizer]).hex())
        return progress

    Trainer.train = train
    run()


if __name__ == "__main__":
    main()
