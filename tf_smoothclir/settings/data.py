"""Settings of the data: which retrieval set, and where its files are."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting


@dataclasses.dataclass(frozen=True)
class DataSettings(Settings):
    """Which retrieval set."""

    data_dir: str = setting(
        "",
        "Directory of the retrieval set: WikiCLIR layout (wiki_en.queries, wiki_fr.documents,"
        " en2fr.rel), or your own queries, documents and judgments as .tsv or .jsonl. Without it,"
        " the built-in toy world.",
        is_path=True,
    )
    tfds_name: str = setting(
        "", "TensorFlow dataset to read instead of --data_dir, such as wiki_clir/fr."
    )
    tfds_data_dir: str = setting(
        "",
        "Where TensorFlow Datasets keeps its files; empty: its default in the home directory.",
        is_path=True,
    )
    query_language: str = setting("en", "Language of the queries (ISO 639-1 code).")
    document_language: str = setting("fr", "Language of the documents (ISO 639-1 code).")
    toy_entities: int = setting(
        2000,
        "Size of the toy world: entities, each with one query and one document.",
        minimum=300,
    )
    split_seed: int = setting(
        13,
        "Seed of the 3:1:1 split of the queries, where the set has no splits of its own, and of"
        " the toy world.",
        minimum=0,
    )
    cache_dir: str = setting(
        "", "Where tokenized texts are cached; empty: ~/.cache/tf_smoothclir.", is_path=True
    )
