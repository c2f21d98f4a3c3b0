"""XCNN: ranking learned in one language, then carried over to the other.

Gupta, Banchs and Rosso, "Continuous Space Models for CLIR", Information Processing and Management
53(2), 2017, as its first author's programs have it (github.com/parthg/jDNN). A text is the sum of
tanh(w_t + b) over its words t (--tower=word_tanh). Both stages take the same loss,

    L = -mean(cos(A, B) - cos(A, N)).

First, in the language of the documents alone: A is the opening of a document, B what BM25 finds for
it, N another document (--opening_epochs). Then A is a query, B the vector of its document of the
highest grade, which stays as it is, N that of another document.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.papers.li2018.helped_task import HelpedTask


class XcnnTask(HelpedTask):
    """The `Task` of XCNN."""

    remedy = "Lower --learning_rate"

    def batch_losses(self, batch):
        """The loss of the stage, which the other stage's does not enter."""
        queries = self.model.query_tower(batch.query, training=True)
        openings = self.model.document_tower(batch.translation, training=True)
        documents = self.model.document_tower(batch.documents, training=True)
        monolingual = self._loss(openings, documents)
        transfer = self._loss(queries, tf.stop_gradient(documents))
        return self._first_stage * monolingual + (1 - self._first_stage) * transfer, {}

    def _loss(self, texts: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        relevant, others = (
            self.model.similarity([texts, of]) for of in tf.split(documents, 2, axis=0)
        )
        return -tf.reduce_mean(relevant - others)
