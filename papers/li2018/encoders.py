"""The encoders of the adversarial model: the two towers, and one for translated queries."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.papers.li2018.triplets import TripletBatch
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.two_tower.model import TwoTower


class Encoders:
    """Three towers, one for each source. Queries and documents are what a trained model keeps."""

    # Translated queries share the table of words of documents, and begin with the same layers
    # behind it: other random layers would make the same words strangers. `matrices` are those of
    # all layers; `borrower_weights`, the trained ones of the tower of translations, without its
    # tables.

    def __init__(self, model: TwoTower, seed: int):
        lender = model.document_tower
        config = {**lender.get_config(), "name": "translation_tower"}
        if "seed" in config:
            config["seed"] = seed
        borrower: WordTableTower = type(lender)(**config)
        borrower.borrow_tables(lender)
        borrower.build()
        borrower.start_like(lender)
        borrower.gradient_policy = lender.gradient_policy
        self.towers = {"query": model.query_tower, "translation": borrower, "document": lender}
        self.matrices = [m for tower in self.towers.values() for m in tower.matrices()]
        lent = {id(table) for table in lender.tables().values()}
        self.borrower_weights = [
            weight for weight in borrower.trainable_weights if id(tf_variable(weight)) not in lent
        ]
        self.borrower_state = [  # such as counters of dropout
            tf_variable(weight)
            for weight in borrower.weights
            if id(tf_variable(weight)) not in lent
        ]

    def __call__(self, batch: TripletBatch) -> dict[str, tf.Tensor]:
        """Source -> vectors; of both documents of all triplets in one pass."""
        texts = {
            "query": batch.query,
            "translation": batch.translation,
            "document": batch.documents,
        }
        return {name: tower(texts[name], training=True) for name, tower in self.towers.items()}
