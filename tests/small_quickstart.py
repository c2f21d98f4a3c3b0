"""`python -m tests.small_quickstart SEED ...`: a quickstart of one epoch on a small world."""

import sys

from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings
from trainers import quickstart

if __name__ == "__main__":
    seed = int(sys.argv.pop(1))
    training = TrainingSettings(epochs=1, seed=seed)
    quickstart.SETTINGS = RunSettings(data=DataSettings(toy_entities=300), training=training)
    quickstart.run()
