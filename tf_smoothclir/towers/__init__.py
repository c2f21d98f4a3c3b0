"""Towers: tokens in, one vector for each text out. One file each."""

from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.bags import LinearTower, WordTanhTower
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.towers.lstm import LSTMTower
from tf_smoothclir.towers.max_lstm import MaxLSTMTower

TOWERS = {
    "average_pooling": AveragePoolingTower,
    "cnn": CNNTower,
    "lstm": LSTMTower,
    "max_lstm": MaxLSTMTower,
    "linear": LinearTower,
    "word_tanh": WordTanhTower,
}
