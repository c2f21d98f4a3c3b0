"""The numbers that Liu et al. 2020 report on WikiCLIR: Tables 1, 2 and 3.

The paper's figures come without numbers; those behind Figure 5 are in its authors' repository. Its
settings that matter: Polyglot embeddings, 30 epochs (LSTM: 15), one run each.

The paper's queries: its authors' `data_prep.py` takes the first 25,000 queries that the judgments
name (`--max_queries=25000`) and splits them 3:1:1. README.md beside this file says what its numbers
of steps suggest instead.
"""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.tables import Table, figures_table
from tf_smoothclir.papers.liu2020.experiments import NEGATIVES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS

# Code -> language of the documents, queries, SR per query, number of documents.
TABLE_1 = {
    "fr": ("French", 25000, 12.6, 1894000),
    "it": ("Italian", 25000, 11.7, 1347000),
    "sw": ("Swahili", 22793, 1.5, 37000),
    "tl": ("Tagalog", 25000, 0.6, 79000),
}
# Documents and system -> the seven metrics in the order of METRICS.
_TABLE_2 = {
    ("French", "SOSL"): (0.438, 0.832, 0.607, 0.811, 0.841, 0.607, 0.919),
    ("French", "3PartL2"): (0.411, 0.763, 0.560, 0.754, 0.766, 0.565, 0.889),
    ("French", "MSE"): (0.253, 0.700, 0.603, 0.727, 0.792, 0.443, 0.854),
    ("French", "PO"): (0.254, 0.704, 0.604, 0.729, 0.795, 0.445, 0.856),
    ("Italian", "SOSL"): (0.401, 0.791, 0.614, 0.798, 0.838, 0.568, 0.912),
    ("Italian", "3PartL2"): (0.385, 0.748, 0.572, 0.751, 0.768, 0.545, 0.883),
    ("Italian", "MSE"): (0.231, 0.699, 0.618, 0.731, 0.803, 0.427, 0.862),
    ("Italian", "PO"): (0.232, 0.705, 0.619, 0.734, 0.806, 0.430, 0.863),
    ("Swahili", "SOSL"): (0.600, 0.916, 0.341, 0.793, 0.776, 0.735, 0.833),
    ("Swahili", "3PartL2"): (0.599, 0.907, 0.314, 0.771, 0.737, 0.732, 0.827),
    ("Swahili", "MSE"): (0.351, 0.851, 0.360, 0.724, 0.738, 0.558, 0.771),
    ("Swahili", "PO"): (0.351, 0.855, 0.362, 0.726, 0.740, 0.560, 0.772),
    ("Tagalog", "SOSL"): (0.596, 0.928, 0.254, 0.799, 0.772, 0.738, 0.794),
    ("Tagalog", "3PartL2"): (0.583, 0.925, 0.251, 0.790, 0.760, 0.730, 0.785),
    ("Tagalog", "MSE"): (0.455, 0.892, 0.251, 0.732, 0.709, 0.639, 0.726),
    ("Tagalog", "PO"): (0.463, 0.896, 0.252, 0.737, 0.715, 0.645, 0.730),
}
_TABLE_3 = {
    ("French", "Average pooling"): _TABLE_2["French", "SOSL"],
    # As printed, but an NDCG@5 of 0.570 does not fit the rest of the row.
    ("French", "DSSM-CNN"): (0.262, 0.656, 0.542, 0.570, 0.709, 0.437, 0.812),
    ("French", "DSSM-LSTM"): (0.335, 0.718, 0.560, 0.716, 0.748, 0.503, 0.846),
    ("Italian", "Average pooling"): _TABLE_2["Italian", "SOSL"],
    ("Italian", "DSSM-CNN"): (0.217, 0.620, 0.547, 0.656, 0.709, 0.394, 0.805),
    ("Italian", "DSSM-LSTM"): (0.248, 0.675, 0.551, 0.675, 0.714, 0.434, 0.814),
    ("Swahili", "Average pooling"): _TABLE_2["Swahili", "SOSL"],
    ("Swahili", "DSSM-CNN"): (0.457, 0.869, 0.310, 0.700, 0.680, 0.628, 0.743),
    ("Swahili", "DSSM-LSTM"): (0.527, 0.897, 0.319, 0.738, 0.713, 0.685, 0.772),
    ("Tagalog", "Average pooling"): _TABLE_2["Tagalog", "SOSL"],
    ("Tagalog", "DSSM-CNN"): (0.450, 0.861, 0.235, 0.699, 0.668, 0.624, 0.693),
    ("Tagalog", "DSSM-LSTM"): (0.526, 0.907, 0.242, 0.748, 0.709, 0.688, 0.736),
}
# Metric -> its values with each of `NEGATIVES`.
FIGURE_5 = {
    "P_mr@1": (0.436, 0.414, 0.410, 0.397, 0.384, 0.375, 0.366, 0.358, 0.353),
    "NDCG@5": (0.840, 0.814, 0.796, 0.778, 0.766, 0.752, 0.743, 0.735, 0.717),
    "MAP": (0.893, 0.858, 0.834, 0.815, 0.797, 0.779, 0.768, 0.754, 0.733),
    "MRR_mr": (0.603, 0.584, 0.574, 0.562, 0.552, 0.541, 0.532, 0.526, 0.514),
}


def paper_tables(experiment: str, comparable: bool) -> list[Table]:
    """The paper's own table; nothing if the paper gives no numbers."""
    caption = "paper, WikiCLIR" + ": not comparable" * (not comparable)
    if experiment == "table1":
        columns = ("documents", "queries", "SR/Q", "number of documents")
        return [Table(caption, columns, tuple(TABLE_1.values()))]
    columns, rows = {
        "table2": (("documents", "loss", *METRICS), [(*of, *_TABLE_2[of]) for of in _TABLE_2]),
        "table3": (("documents", "tower", *METRICS), [(*of, *_TABLE_3[of]) for of in _TABLE_3]),
        "figure5": (("negatives", *FIGURE_5), zip(map(str, NEGATIVES), *FIGURE_5.values())),
    }.get(experiment, ((), ()))
    return [figures_table(caption, columns, rows)] * bool(columns)


def is_published(language: str, *, layout: bool, queries: int, documents: int) -> bool:
    """Whether a set is the paper's, in one of its languages, by the counts of Table 1."""
    # Others share its layout, and the published archive has more queries. Documents are in
    # thousands there.
    _, paper_queries, _, paper_documents = TABLE_1.get(language, ("", 0, 0, 0))
    return layout and queries == paper_queries and abs(documents - paper_documents) <= 1000


def differences_from_paper(settings: RunSettings) -> list[str]:
    """How settings differ from the paper's, besides what its tables vary."""
    model, training, text = settings.model, settings.training, settings.text
    negatives = training.negatives if training.train_negatives < 0 else training.train_negatives
    ours_and_theirs = {
        "epochs": (training.epochs, 30),
        "optimizer": (training.optimizer, "adam"),
        "sampled negatives per query": (training.negatives, 40),
        "sampled negatives per training query": (negatives, 40),
        "hard negatives": (training.hard_negatives, 0),
        "fresh negatives": (training.fresh_negatives, False),
        "batching": (training.batching, "pairs"),
        "dimension": (model.dim, 64),
        "tokens of a document": (text.max_document_tokens, 200),
        "vocabulary": (text.vocabulary_size, 100_000),
        "n-grams": (text.ngram_buckets > 0, False),
        "pre-trained word vectors": (
            bool(model.query_embeddings and model.document_embeddings),
            True,
        ),
    }
    return [
        f"{name} {_text(ours)} (paper: {_text(theirs)})"
        for name, (ours, theirs) in ours_and_theirs.items()
        if ours != theirs
    ]


def _text(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
