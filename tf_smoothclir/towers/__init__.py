"""Towers: token ids in, one vector a text out. One file each."""

from tf_smoothclir.towers.average_pooling import AveragePoolingTower

TOWERS = {"average_pooling": AveragePoolingTower}
