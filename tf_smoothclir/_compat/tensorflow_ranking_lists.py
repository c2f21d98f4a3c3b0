"""Ranking metrics of the stack of Keras 2, by tensorflow-ranking 0.5.5."""


def list_metric(name: str, ranked, topn: int | None):
    """A metric of each list, `[lists]`, in a graph too, of grades in the order of ranks."""
    # Grades are `[lists, length]` float32, 0 for padding.
    import tensorflow as tf
    from tensorflow_ranking.python import metrics_impl

    metric = {
        "ndcg": lambda: metrics_impl.NDCGMetric(None, topn, gain_fn=tf.identity),
        "average_precision": lambda: metrics_impl.MeanAveragePrecisionMetric(None, topn),
        "reciprocal_rank": lambda: metrics_impl.MRRMetric(None, topn),
    }[name]()
    scores = tf.zeros_like(ranked) - tf.range(tf.shape(ranked)[1], dtype=tf.float32)
    values, _ = metric.compute(ranked, scores)
    return values[:, 0]
