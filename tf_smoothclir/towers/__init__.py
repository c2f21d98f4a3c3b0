"""Towers: token ids in, one vector a text out. One file each."""

from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.towers.lstm import LSTMTower

TOWERS = {"average_pooling": AveragePoolingTower, "cnn": CNNTower, "lstm": LSTMTower}
