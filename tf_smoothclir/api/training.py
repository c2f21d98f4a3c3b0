"""Training from Python, as `smoothclir-train`, on data of the calling program; and teaching."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorflow import keras

from tf_smoothclir.api.given import Judgments, Table, Texts, shown, splits_of, whole_number
from tf_smoothclir.api.model import Model
from tf_smoothclir.api.sets import Data, check_given_columns, set_in_memory
from tf_smoothclir.api.settings import settings_with_data
from tf_smoothclir.data.sources.memory import Tokenizer
from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
from tf_smoothclir.foreign_encoders.python_encoders import PythonEncoder
from tf_smoothclir.foreign_encoders.teaching import taught
from tf_smoothclir.settings.data import EncoderSettings
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.training.train import train as train_run
from tf_smoothclir.training.trainer import Interrupted
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import PathText, local_path
from tf_smoothclir.utils.progress import progress_shown


def train(
    data: Data | None = None,
    *,
    queries: Texts | None = None,
    documents: Texts | None = None,
    judgments: Judgments | None = None,
    clicks: Table | None = None,
    pairs: Table | None = None,
    parallel: Table | PathText | None = None,
    splits: Mapping[str, str] | None = None,
    preset: str = "",
    output_dir: PathText | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    query_tower: keras.layers.Layer | None = None,
    document_tower: keras.layers.Layer | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    tokenizer: Tokenizer | None = None,
    folds: int | None = None,
    **settings: Any,
) -> Model:
    """Trains what ranks documents of one language for queries of another, and evaluates it.

    The same as the command `smoothclir-train`. The queries are split 3:1:1 into training,
    validation and test, unless the set has splits of its own; `Model.metrics` are those of the test
    queries, which nothing is trained or chosen on.

    ```python
    model = sc.train(queries=queries, documents=documents, judgments=judgments)
    ```

    Args:
        data: Directory of a retrieval set, as for `--data_dir`, or an open set (`RetrievalSet` or
            `Source`). Without it and without `queries`, the built-in toy world.
        queries: Id -> text, as a dictionary or a pandas series; a data frame, or a list of
            dictionaries, with the columns `id` and `text`; or a list of texts, whose ids are their
            positions from 0. `columns={"text": "body"}` says where columns have other names.
        documents: The same. The column `title` of a frame is shown with search results; only the
            text is searched.
        judgments: Triples of query id, document id and grade, as a list or as a data frame with
            the columns `query_id`, `document_id` and `grade`; or query id -> document id -> grade.
            Grades are whole numbers from 0 (not relevant) on; what is not judged has grade 0.
            Without grades, what is listed has grade 1. A fourth value or column `weight` says how
            much the translation table learns from a judgment; 1 by default.
        clicks: In the place of queries and judgments: rows of a query (its text), a document id
            and perhaps a count; columns `query`, `document_id`, `count`. Counts are added up; a
            document has grade 2 with at least half as many clicks as the one that the query has
            most clicks of, else 1. Unknown documents are skipped up to the share `max_skipped`.
        pairs: All of a set: rows of a query and a document (texts), and perhaps a grade; columns
            `query`, `document`, `grade`. Equal texts of a language are one query, or document.
        parallel: Beside documents, in the place of all judgments: rows of a sentence in the
            language of the queries and its translation, or the path that `--parallel` takes. They
            teach the translation table alone; nothing is measured then.
        splits: Query id -> "train", "validation" or "test", for every judged query.
        preset: What settings are that are not given: "best", "dense", "lexical", "fast" or "paper";
            docs/presets.md compares them. "" is "best" or, where that has other towers than what is
            given, such as `tower="lstm"`, "fast" with a translation table.
        output_dir: The run directory: models, report, metrics. A set that is given in memory is
            kept in its `data/`. By default a temporary directory, which is deleted with the model.
        overwrite: Deletes the run that is there. Without it, an unfinished run with the same
            settings and data continues, and a finished one is returned as it is.
        progress: Whether to show progress bars; None shows them on a terminal and in a notebook.
        query_tower: A Keras layer of your own as the tower of queries: from `[batch, length]` ids,
            where 0 is padding and 1 an unknown word, to `[batch, dim]`. A tower of this package may
            be given too; its `vocabulary_size` becomes that of the set. Where only one tower is
            given, the other one is average pooling.
        document_tower: The same for documents.
        callbacks: Keras callbacks, called at the beginning and the end of training and of each
            epoch; `EarlyStopping` and others that set `model.stop_training` work.
        tokenizer: A function from a text to its words, in the place of the tokenizer of this
            package. The run keeps texts as it splits them, and its exported models split at white
            space alone (`pretokenized`). The model that is returned applies it to what it is given,
            and so does `load(path, tokenizer=tokenizer)`.
        folds: From 3 on, measures by cross-validation too: each judged query is a test query once
            (`Model.details["cross-validation"]`). It takes as many trainings; 0 for none. By
            default 5 for sets without splits of their own whose test split would be small.
        **settings: All settings of `smoothclir-train`, by the names of its flags, such as
            `epochs=10`. `init_from=RUN` begins with the models of another run and adds new words.
            Without `thresholds`, a set gets as many as its grades need. `loss` may also be a Keras
            loss object, such as one of this package's with arguments of your own.

    Returns:
        The trained model, as `load` returns it for the run directory.

    Raises:
        InputError: An argument, a setting or the data cannot be used; the message says what to
            write instead.
        KeyboardInterrupt: You stopped it. With the same `output_dir`, the same call continues.
    """
    of_keras = keras.callbacks.Callback
    if not isinstance(callbacks, Sequence) or not all(isinstance(c, of_keras) for c in callbacks):
        reason, remedy = f"it is {shown(callbacks)}", "Give a list of Keras callbacks"
        raise input_error("train: callbacks", reason, remedy)
    folds = None if folds is None else whole_number(folds, "folds", 0)
    temporary = None
    if output_dir is None:
        temporary = tempfile.TemporaryDirectory(prefix="smoothclir-")
        output_dir = temporary.name
    path = Path(local_path(output_dir, "train: output_dir"))
    of_set = {"queries": queries, "documents": documents, "judgments": judgments, "splits": splits}
    of_texts = {"clicks": clicks, "pairs": pairs, "parallel": parallel}
    towers = {"query_tower": query_tower, "document_tower": document_tower}
    keywords = {**of_set, **of_texts, **towers, "tokenizer": tokenizer, **settings}
    chosen, in_memory = settings_with_data("train", data, preset, keywords, path, overwrite)
    with progress_shown(progress):
        try:
            train_run(
                chosen,
                path,
                overwrite=overwrite,
                callbacks=callbacks,
                folds=folds,
                in_memory=in_memory,
            )
        except Interrupted:
            raise KeyboardInterrupt(f"stopped and saved in {path}") from None
    return Model(path, held=temporary, tokenizer=tokenizer)


def teach(
    queries: Texts,
    documents: Texts,
    *,
    encoder: Any,
    judgments: Judgments | None = None,
    splits: Mapping[str, str] | None = None,
    encoder_model: str = "",
    query_prefix: str = "",
    document_prefix: str = "",
    progress: bool | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Makes judgments of an encoder for queries that nobody judged, such as a query log.

    ```python
    model = sc.train(**sc.teach(log, documents, encoder=my_model.encode), preset="lexical")
    ```

    The encoder ranks the documents for each query; its first hit counts as the best document, with
    a weight from 0.5 to 1.5 by its lead over the second one. From these, `train` learns to rank
    better than the encoder. What people judged stays, and alone is for test queries; without that,
    a run has no test figures.

    Args:
        queries: As for `train`; those without judgments are what is taught.
        documents: As for `train`.
        encoder: A function from a list of texts to `[texts, dim]`; an object of a library with
            `encode_queries` and `encode_documents`, or with `encode`; or what `--encoder` takes,
            such as "http://localhost:8000/v1". Vectors are kept in `cache_dir` by text; those of a
            function, by its name, as long as it gives some of the texts the same ones.
        judgments: As for `train`, of some of the queries.
        splits: As for `train`, of the judged queries.
        encoder_model: The model that a server is asked for.
        query_prefix: Put before each query, such as "query: ".
        document_prefix: Put before each document, such as "passage: ".
        progress: Whether to show progress bars; None shows them on a terminal and in a notebook.
        **settings: Settings of the text and the data of `train`, such as `document_language`.

    Returns:
        `queries`, `documents`, `judgments` and `splits`: arguments of `train`.

    Raises:
        InputError: The data or the encoder cannot be used, or all queries have judgments.
    """
    chosen = changed(preset_settings("lexical"), settings)
    texts = {"queries": queries, "documents": documents}
    for name, given in texts.items():
        texts[name] = list(given) if isinstance(given, Iterator) else given  # `train` reads it too
    parts = {**texts, "judgments": [] if judgments is None else judgments}
    if chosen.data.columns:
        check_given_columns(None, parts, chosen.data)
    source = set_in_memory("teach", parts, splits_of(splits), chosen.data)
    if isinstance(encoder, str):
        opened = encoder_of(EncoderSettings(encoder, encoder_model, query_prefix, document_prefix))
    else:
        opened = PythonEncoder(encoder, query_prefix=query_prefix, document_prefix=document_prefix)
    with progress_shown(progress):
        judged, _ = taught(
            source, EncodedSet.of(opened, source, chosen.data.cache_dir), chosen.data.split_seed
        )
    return {**texts, "judgments": list(judged.judgments()), "splits": judged.splits()}
