"""An example for each rule of what goes together with what."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.command_line.flag_rules import FLAG_RULES
from tf_smoothclir.extras import distributed
from tf_smoothclir.papers import li2018  # these rules are examples of a plug-in's
from tf_smoothclir.papers.li2018.rules import LAYER_RULES, OBJECTIVE_RULES
from tf_smoothclir.settings import combinations
from tf_smoothclir.settings.combinations import Rule

OF_PLUGINS = {
    **dict.fromkeys((*OBJECTIVE_RULES, *LAYER_RULES), li2018.__name__),
    **dict.fromkeys(distributed.RULES, distributed.__name__),
}
RULES = (*combinations.RULES, *OF_PLUGINS)


@dataclasses.dataclass(frozen=True)
class Example:
    """What breaks one rule first; everything else has its default."""

    rule: Rule
    values: dict[str, object]

    def __str__(self) -> str:
        return "-".join(self.rule.names)


_FROM_SHARDS = {"distribution": "shards", "shards_dir": "gs://shards", "batching": "lists"}
_SETTINGS = {
    ("data_dir", "tfds_name"): {"data_dir": "here", "tfds_name": "wiki_clir/fr"},
    ("ir_dataset", "data_dir", "tfds_name"): {"data_dir": "here", "ir_dataset": "mr-tydi/sw"},
    ("min_ngram", "max_ngram"): {"min_ngram": 4, "max_ngram": 3},
    ("token_weights", "tower"): {"token_weights": "idf", "tower": "cnn"},
    ("position_weights", "tower"): {"position_weights": "learned", "tower": "cnn"},
    ("projection_layers", "tower"): {"projection_layers": 2, "tower": "lstm"},
    ("matryoshka_dims", "tower"): {"matryoshka_dims": (8,), "tower": "lstm"},
    ("loss", "batching"): {"loss": "softmax", "batching": "bucketed"},
    ("loss", "objects"): {"loss": "given"},
    ("tower", "objects"): {"tower": "given"},
    **{
        ("tower", name): {"tower": "given", "objects": "{}", name: value}
        for name, value in (
            ("ngram_buckets", 50),
            ("initial_vectors", "bilingual"),
            ("query_embeddings", "en.vec"),
            ("document_embeddings", "fr.vec"),
        )
    },
    ("initial_vectors", "query_embeddings", "document_embeddings"): {
        "initial_vectors": "bilingual",
        "document_embeddings": "fr.vec",
    },
    ("shared_vocabulary", "query_embeddings", "document_embeddings"): {
        "shared_vocabulary": True,
        "query_embeddings": "en.vec",
        "document_embeddings": "fr.vec",
    },
    ("shared_vocabulary", "query_vocabulary", "document_vocabulary"): {
        "shared_vocabulary": True,
        "query_vocabulary": "en.txt",
        "document_vocabulary": "fr.txt",
    },
    ("shared_vocabulary", "train_query_embeddings", "train_document_embeddings"): {
        "shared_vocabulary": True,
        "train_query_embeddings": False,
    },
    (
        "tower",
        "token_weights",
        "position_weights",
        "train_query_embeddings",
        "train_document_embeddings",
    ): {
        "train_query_embeddings": False,
        "train_document_embeddings": False,
    },
    ("distribution", "shards_dir"): {"distribution": "multi_worker", "batching": "lists"},
    ("shards_dir", "distribution"): {"shards_dir": "gs://shards"},
    ("objective", "distribution"): {"objective": "adversarial", **_FROM_SHARDS},
    ("objective", "batching"): {"objective": "adversarial", "batching": "lists"},
    ("objective", "loss"): {"objective": "s2net", "loss": "mse"},
    ("objective", "pseudo_queries"): {"objective": "adversarial", "pseudo_queries": 100},
    ("objective", "hard_negatives"): {"objective": "s2net", "hard_negatives": 3},
    ("objective", "opening_epochs"): {"objective": "xcnn"},
    ("objective", "optimizer"): {"objective": "xcnn", "optimizer": "adam", "opening_epochs": 2},
    ("objective", "matryoshka_dims"): {"objective": "adversarial", "matryoshka_dims": (8,)},
    ("objective", "shared_vocabulary"): {"objective": "adversarial", "shared_vocabulary": True},
    ("objective", "tower"): {"objective": "bae"},
    ("objective", "ngram_buckets"): {
        "objective": "bae",
        "tower": "linear",
        "ngram_buckets": 100,
    },
    ("objective", "adversarial_weight", "discriminator_steps"): {
        "objective": "adversarial",
        "discriminator_steps": 0,
    },
    ("objective", "opening_epochs", "epochs"): {
        "objective": "adversarial",
        "opening_epochs": 5,
        "epochs": 5,
    },
    ("distribution", "retriever"): {**_FROM_SHARDS, "retriever": "lexical"},
    ("distribution", "reranker"): {**_FROM_SHARDS, "reranker": "late_interaction"},
    ("rerank_depth", "reranker"): {"rerank_depth": 50},
    ("retriever", "ranker"): {"ranker": "bm25"},
    ("ranker", "query_translation"): {"retriever": "lexical", "query_translation": "none"},
    ("retriever", "query_translation", "query_embeddings", "document_embeddings"): {
        "retriever": "lexical",
        "ranker": "ql",
        "query_translation": "nearest",
        "query_embeddings": "en.vec",
    },
    ("fusion", "retriever"): {"fusion": "reciprocal_rank", "retriever": "lexical"},
    ("dictionary", "retriever"): {"dictionary": "en-fr.txt"},
    ("dictionary", "query_translation"): {
        "retriever": "lexical",
        "ranker": "bm25",
        "query_translation": "none",
        "dictionary": "en-fr.txt",
    },
    ("distribution", "batching"): {**_FROM_SHARDS, "batching": "in_batch"},
    ("distribution", "fresh_negatives"): {"fresh_negatives": True, **_FROM_SHARDS},
    ("distribution", "hard_negatives"): {"hard_negatives": 2, **_FROM_SHARDS},
    ("distribution", "pseudo_queries"): {"pseudo_queries": 9, **_FROM_SHARDS},
    ("distribution", "ngram_buckets"): {"ngram_buckets": 50, **_FROM_SHARDS},
    ("num_shards", "ngram_buckets"): {"num_shards": 2, "ngram_buckets": 50},
    ("init_from", "distribution"): {"init_from": "there", **_FROM_SHARDS},
    ("init_from", "query_vocabulary"): {"init_from": "there", "query_vocabulary": "words.txt"},
    ("init_from", "document_vocabulary"): {"init_from": "there", "document_vocabulary": "w.txt"},
    ("init_from", "initial_vectors"): {"init_from": "there", "initial_vectors": "bilingual"},
    ("init_from", "query_embeddings"): {"init_from": "there", "query_embeddings": "vectors.txt"},
    ("init_from", "document_embeddings"): {"init_from": "there", "document_embeddings": "v.txt"},
    ("init_from", "dictionary"): {
        "init_from": "there",
        "dictionary": "words.txt",
        "retriever": "hybrid",
    },
    ("init_from", "ranker"): {"init_from": "there", "ranker": "ql", "retriever": "lexical"},
    ("tune", "distribution"): {"tune": ("dim",), **_FROM_SHARDS},
    ("tune", "retriever"): {"tune": ("dim",), "retriever": "lexical"},
    ("tune", "objective"): {"tune": ("gamma1",)},
    ("tune", "ranker"): {"tune": ("psq_beta",), "retriever": "lexical", "ranker": "ql"},
}
_GIVEN = {  # other values than the defaults of these flags
    "queries": "queries.tsv",
    "query": "a river",
    "trec_run": "a.run",
    "json": True,
    "explain": True,
    "add": "documents.tsv",
    "remove": "ids.txt",
    "engine": "milvus",
    "index_dir": "index",
    "collection": "documents.tsv",
    "index_type": "hnsw",
    "hnsw_neighbours": 64,
    "search_effort": 9,
    "overwrite": True,
    "data_dir": "here",
    "tfds_name": "wiki_clir/fr",
    "tfds_data_dir": "here",
    "ir_dataset": "mr-tydi/sw",
    "query_language": "de",
    "document_language": "sw",
    "max_queries": 25,
    "max_train_queries": 12,
    "related_per_query": 0.5,
    "max_skipped": 0.1,
    "toy_entities": 900,
    "split_seed": 5,
}
_ALONE = {  # flags that need another one
    ("replace", "add"): {"replace": True},
    ("engine", "uri"): {"engine": "milvus"},
    ("uri", "engine"): {"uri": "here.db"},
    ("engine_collection", "engine"): {"engine_collection": "mine"},
    ("filter", "engine"): {"filter": "id > 1"},
    ("add", "engine"): {"add": "documents.tsv"},
    ("remove", "engine"): {"remove": "ids.txt"},
    ("rerank_depth", "first_stage"): {"rerank_depth": 50},
}
_FLAGS = {
    **{
        rule.names: {name: _GIVEN[name] for name in rule.names}
        for rule in FLAG_RULES
        if rule.names not in _ALONE
    },
    **_ALONE,
}
OF_SETTINGS = tuple(Example(rule, _SETTINGS[rule.names]) for rule in RULES)
OF_FLAGS = tuple(Example(rule, _FLAGS[rule.names]) for rule in FLAG_RULES)
