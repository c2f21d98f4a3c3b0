"""Settings of the data: which retrieval set, where its files are, which foreign encoder."""

import dataclasses
from typing import Self

from tf_smoothclir.settings.base import MAX_SEED, Rule, Settings, setting

LANGUAGES = ("query_language", "document_language")  # "": what the set says
RULES = (
    *(
        Rule(
            lambda one, *others: bool(one and any(others)),
            "both name a retrieval set",
            "Give one of them, or neither for the toy world",
            names,
        )
        for names in (("data_dir", "tfds_name"), ("ir_dataset", "data_dir", "tfds_name"))
    ),
    Rule(
        lambda parallel, data_dir: bool(parallel) and not data_dir,
        "sentences teach, and are not searched",
        "Name a directory with the documents that are",
    ),
)


@dataclasses.dataclass(frozen=True)
class DataSettings(Settings):
    """Which retrieval set."""

    data_dir: str = setting(
        "",
        "Directory of the retrieval set, in tables (.tsv, .csv, .jsonl, .parquet): your own"
        " queries, documents and judgments; documents and clicks; or pairs, of a query and a"
        " document, alone, whose file may be named itself. Or in the layout of WikiCLIR"
        " (wiki_en.queries, wiki_fr.documents, en2fr.rel) or BEIR (corpus.jsonl, queries.jsonl,"
        " qrels/). Without it, the built-in toy world.",
        is_path=True,
        has_effect=False,
    )
    columns: str = setting(
        "",
        "Other names that columns have in your own tables, such as query=anchor,document=positive;"
        " several for a column that files name differently: text=question,text=answer.",
    )
    parallel: str = setting(
        "",
        "For documents without judgments: parallel sentences that teach the translation table, a"
        " table of two columns (query, document, or the codes of the languages), or two files of"
        " lines as Moses has them, such as a.en,a.de; also a table parallel.* in --data_dir."
        " Nothing is measured then.",
        is_path="several",
        has_effect=False,
    )
    tfds_name: str = setting(
        "", "TensorFlow dataset to read instead of --data_dir, such as wiki_clir/fr."
    )
    tfds_data_dir: str = setting(
        "",
        "Where TensorFlow Datasets keeps its files; empty: its default in the home directory.",
        is_path=True,
        has_effect=False,
    )
    ir_dataset: str = setting(
        "",
        "Set of the package ir_datasets to read instead of --data_dir, such as wikiclir/sw; the"
        " package downloads it. Needs pip install '.[ir_datasets]'.",
    )
    query_language: str = setting(
        "", "Language of the queries, as for --document_language; of the toy world, en."
    )
    document_language: str = setting(
        "",
        "Language of the documents (ISO 639 code), or several: de,fr. Of a set whose files or"
        " column `language` say which each has, only these are read; without it, or with all,"
        " every one. Otherwise it is a name for what is there, and unknown without it. Of the toy"
        " world, fr or some of en,fr,it,sw,tl.",
    )
    max_queries: int = setting(
        0,
        "Use only this many judged queries, those that the judgments name first (the authors:"
        " 25,000). 0: all queries.",
        minimum=0,
    )
    max_train_queries: int = setting(
        0,
        "Train on only this many queries, drawn by --split_seed from those of the training split,"
        " to see what fewer judged queries would give. Validation and test keep all of theirs. 0:"
        " all.",
        minimum=0,
    )
    max_skipped: float = setting(
        0.01,
        "Largest share of the judgments, or clicks, that may be skipped because they repeat another"
        " one, or name a query or document that is not there; a warning counts them. Beyond it,"
        " they are an error.",
        minimum=0.0,
        maximum=1.0,
    )
    toy_entities: int = setting(
        2000, "Size of the toy world: entities, each with one query and one document.", minimum=300
    )
    split_seed: int = setting(
        13,
        "Seed of the 3:1:1 split of the queries, where the set has no splits of its own, of"
        " --max_train_queries, and of the toy world.",
        minimum=0,
        maximum=MAX_SEED,
    )
    cache_dir: str = setting(
        "",
        "Where tokenized texts are cached; empty: ~/.cache/tf_smoothclir.",
        is_path=True,
        has_effect=False,
    )

    def of_another_set(self) -> Self:
        """Settings for another set: it need not have the same languages if these are several."""
        codes = {name: getattr(self, name) for name in LANGUAGES}
        several = {name: "" for name, code in codes.items() if "," in code}
        return dataclasses.replace(self, parallel="", **several)


@dataclasses.dataclass(frozen=True)
class EncoderSettings(Settings):
    """A model from elsewhere that turns texts into vectors."""

    encoder: str = setting(
        "",
        "A multilingual encoder. http://localhost:8000/v1: an OpenAI-compatible server, by address."
        " sentence-transformers:NAME or model2vec:NAME: a model of these packages, by name or"
        " directory. FILE.npz: the arrays query_ids, queries, document_ids and documents."
        " MODULE:NAME: a function of texts, or an object with encode_queries and encode_documents.",
    )
    encoder_model: str = setting("", "The model that a server is asked for, by its name there.")
    query_prefix: str = setting(
        "", 'Put before each query that the encoder reads, such as "query: " for e5.'
    )
    document_prefix: str = setting(
        "", 'Put before each document that the encoder reads, such as "passage: " for e5.'
    )
    distill: bool = setting(
        False,
        "A student learns how --encoder reads queries, and reads them in its place: then only"
        " documents need the encoder.",
    )
