"""What goes together with what: the one table of settings that exclude or need each other.

Commands check it before they load anything, and so do the library's entry points: training, tuning,
opening a retrieval set. What a single setting accepts stands at its field.
"""

from __future__ import annotations

from collections.abc import Collection

from tf_smoothclir import plugins
from tf_smoothclir.plugins import LOSSES, TOWERS
from tf_smoothclir.settings.base import Settings
from tf_smoothclir.settings.retrieval import DEFAULT_RERANK_DEPTH
from tf_smoothclir.settings.rule import Rule
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.errors import InputError

LEXICAL = ("psq_alpha", "psq_beta")  # what smoothclir-tune can search in a lexical model
_ONE_RUN = "only smoothclir-train trains in another way than one process on the whole set"
_LEAVE_OUT = "Leave one of the two out"
_TRAIN_THE_BEST = "Leave it out here, and give it to smoothclir-train with the settings found here"
_BESIDE_INIT_FROM = {
    "distribution": "one process trains the models of another run further, on the whole set",
    "query_vocabulary": "the vocabularies are those of that run",
    "document_vocabulary": "the vocabularies are those of that run",
    "initial_vectors": "the word vectors start as those of that run",
    "query_embeddings": "the word vectors start as those of that run",
    "document_embeddings": "the word vectors start as those of that run",
    "dictionary": "the translation table of that run takes its place",
}
NOT_BESIDE_INIT_FROM = {*_BESIDE_INIT_FROM, "ranker"}


def _is(tower: str, fact: str) -> bool:
    return bool(TOWERS.plugin(tower).fact(fact, False))


RULES = (
    # Beside settings, some rules read a flag that only one command has.
    Rule(("tune", "distribution"), lambda _, one: one != "none", _ONE_RUN, _TRAIN_THE_BEST),
    Rule(
        ("tune", "retriever"),
        lambda tune, retriever: any(
            (retriever == "dense") if name in LEXICAL else (retriever == "lexical") for name in tune
        ),
        "it ranks without one of these settings",
        f"Name {' or '.join(LEXICAL)} for a lexical model, others for towers, any for a hybrid",
    ),
    Rule(
        ("tune", "ranker"),
        lambda tune, ranker: ranker != "psq" and any(name in LEXICAL for name in tune),
        "only psq has these settings",
        "Leave --ranker out",
    ),
    Rule(
        ("retriever", "ranker"),
        lambda retriever, ranker: retriever == "dense" and ranker != "psq",
        "two towers rank by their vectors",
        "Add --retriever=lexical or --retriever=hybrid",
    ),
    Rule(
        ("ranker", "query_translation"),
        lambda ranker, translation: ranker == "psq" and translation != "table",
        "psq translates documents, by the translation table",
        "Add --ranker=bm25 or --ranker=ql",
    ),
    Rule(
        ("retriever", "query_translation", "query_embeddings", "document_embeddings"),
        lambda retriever, translation, *files: (
            (retriever, translation) == ("lexical", "nearest") and any(files) and not all(files)
        ),
        "the nearest word is found by vectors of both languages",
        "Give both files, or neither",
    ),
    Rule(
        ("fusion", "retriever"),
        lambda fusion, retriever: fusion != "auto" and retriever != "hybrid",
        "there is one ranking, and nothing to fuse",
        "Add --retriever=hybrid, or leave --fusion out",
    ),
    Rule(
        ("rerank_depth", "reranker"),
        lambda depth, reranker: depth != DEFAULT_RERANK_DEPTH and reranker == "none",
        "nothing orders these documents again",
        "Add --reranker=late_interaction, or leave --rerank_depth out",
    ),
    Rule(
        ("dictionary", "retriever"),
        lambda dictionary, retriever: bool(dictionary) and retriever == "dense",
        "two towers have no translation table",
        "Add --retriever=lexical or --retriever=hybrid",
    ),
    Rule(
        ("dictionary", "query_translation"),
        lambda dictionary, translation: bool(dictionary) and translation != "table",
        "a dictionary becomes part of the translation table, which this does without",
        _LEAVE_OUT,
    ),
    *(
        Rule(
            names,
            lambda one, *others: bool(one and any(others)),
            "both name a retrieval set",
            "Give one of them, or neither for the toy world",
        )
        for names in (("data_dir", "tfds_name"), ("ir_dataset", "data_dir", "tfds_name"))
    ),
    Rule(
        ("min_ngram", "max_ngram"),
        lambda shortest, longest: longest < shortest,
        "the longest n-gram would be shorter than the shortest",
        "Raise --max_ngram or lower --min_ngram",
    ),
    Rule(
        ("token_weights", "tower"),
        lambda weights, tower: (
            weights not in TOWERS.plugin(tower).fact("accepted_token_weights", ("none",))
        ),
        "such a tower does not weight words, or not in this way",
        _LEAVE_OUT,
    ),
    Rule(
        ("position_weights", "tower"),
        lambda weights, tower: weights != "none" and not _is(tower, "weighs_positions"),
        "a tower that reads word order knows positions",
        _LEAVE_OUT,
    ),
    Rule(
        ("matryoshka_dims", "tower"),
        lambda dims, tower: bool(dims) and not _is(tower, "can_be_cut"),
        "the first numbers of a vector come from layers that need all of it",
        _LEAVE_OUT,
    ),
    Rule(
        ("loss", "batching"),
        lambda loss, batching: (
            LOSSES.plugin(loss).fact("needs_lists", False) and batching not in ("lists", "in_batch")
        ),
        "this loss compares the documents of a whole candidate list",
        "Add --batching=lists",
    ),
    *(
        Rule(
            (name, "objects"),
            lambda value, objects: value == "given" and not objects,
            "only Python can give an object",
            "Name a loss or tower; --plugin=MODULE brings your own",
        )
        for name in ("loss", "tower")
    ),
    *(
        Rule(
            ("tower", name),
            lambda tower, value: tower == "given" and value not in ("", 0, "random"),
            "a layer that Python gave has word vectors of its own, by the ids of words",
            _LEAVE_OUT,
        )
        for name in ("ngram_buckets", "initial_vectors", "query_embeddings", "document_embeddings")
    ),
    Rule(
        ("initial_vectors", "query_embeddings", "document_embeddings"),
        lambda initial, *files: initial != "random" and any(files),
        "word vectors can start in one way only",
        "Leave out --initial_vectors or the files",
    ),
    *(
        Rule(
            ("shared_vocabulary", f"query_{files}", f"document_{files}"),
            lambda shared, *paths: shared and len({*paths} - {""}) > 1,
            f"both languages share one {what} two files",
            f"Give one file, {remedy} both languages",
        )
        for files, what, remedy in (
            ("embeddings", "embedding table, which cannot start from", "aligned for"),
            ("vocabulary", "vocabulary, which cannot have the words of", "with the words of"),
        )
    ),
    Rule(
        ("shared_vocabulary", "train_query_embeddings", "train_document_embeddings"),
        lambda shared, train_query, train_document: shared and train_query != train_document,
        "both languages share one embedding table, which is either trained or frozen",
        "Give both flags, or none",
    ),
    Rule(
        (
            "tower",
            "token_weights",
            "position_weights",
            "train_query_embeddings",
            "train_document_embeddings",
        ),
        lambda tower, of_tokens, of_positions, *trained: (
            _is(tower, "trains_words_alone")
            and not any(trained)
            and "learned" not in (of_tokens, of_positions)
        ),
        "such a tower has only its word vectors, so nothing is left to train",
        "Train at least one of the two",
    ),
    *(
        Rule(
            ("init_from", other),
            lambda path, value: bool(path) and value not in ("", "random", "none"),
            reason,
            _LEAVE_OUT,
        )
        for other, reason in _BESIDE_INIT_FROM.items()
    ),
    Rule(
        ("init_from", "ranker"),
        lambda path, ranker: bool(path) and ranker != "psq",
        "only psq begins with the translation table of another run",
        _LEAVE_OUT,
    ),
)


def broken_rules(*settings: Settings | RunSettings, **flags) -> list[tuple[Rule, InputError]]:
    """Each rule that settings break, with its error."""
    values = dict(flags)
    for some in settings:
        values |= some.values()
    return [
        (rule, rule.error(values)) for rule in (*RULES, *plugins.rules()) if rule.breaks(values)
    ]


def check_combinations(
    *settings: Settings | RunSettings, varied: Collection[str] = (), **flags
) -> None:
    """Checks what goes together with what."""
    for rule, error in broken_rules(*settings, **flags):
        if not {*rule.names} & {*varied}:
            raise error
