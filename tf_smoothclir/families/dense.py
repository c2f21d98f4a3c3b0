"""Two towers: a text is a vector, and a score is an inner product of two."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from absl import logging

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.families.family import GraphFamily
from tf_smoothclir.families.towers import SearchedTowers, Towers, training_query_vectors

if TYPE_CHECKING:
    from tf_smoothclir.data.tokenized_set import TokenizedSet
    from tf_smoothclir.settings.run import RunSettings
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet

_NAMES = {  # of losses and towers, where the value of the flag says too little
    "sosl": "Smooth Ordinal Search Loss",
    "mse": "mean squared error",
    "three_part_l2": "3PartL2",
    "approx_ndcg": "ApproxNDCG",
    "list_mle": "ListMLE",
    "cnn": "DSSM-CNN",
    "lstm": "DSSM-LSTM",
}
_PROFILES = "Weight of a word by its position, in the towers"


class Dense(GraphFamily):
    """Two towers; its model is a `TwoTower`, which is trained, and its published one `Towers`."""

    has_task = True
    half_content = "vectors"
    ranks_by = "two towers that give queries and documents vectors"

    def path(self, run):
        return run.checkpoints

    def check(self, run):
        from tf_smoothclir.training.tasks import check_weights

        check_weights(run)

    def load(self, run, settings):
        from tf_smoothclir.training.tasks import load_model

        return load_model(run, settings.model.dim)

    def needs_pairs(self, settings):
        return True

    def thresholds(self, model: Any, settings: RunSettings) -> tuple[float, ...]:
        """Thresholds of the loss, which may have learned them."""
        from tf_smoothclir.two_tower.scorer import thresholds_of

        return tuple(thresholds_of(settings, model))

    def training_set(self, run: RunDirectory, over: ModelsOverSet) -> TokenizedSet:
        """The set with pseudo-queries as further training queries, which the run keeps.

        A run with a translation table learns it for this.
        """
        from tf_smoothclir.families.lexical import table_of
        from tf_smoothclir.lexical.pseudo_queries import with_pseudo_queries, write_pseudo_queries

        training, tokenized_set = over.settings.training, over.tokenized_set
        number = training.pseudo_queries - len(tokenized_set.retrieval_set.queries_in("train"))
        if number <= 0:
            return tokenized_set
        if not run.pseudo_queries.is_dir():
            model = table_of(run, over)
            with run.writing(run.pseudo_queries) as path:
                path.mkdir()
                write_pseudo_queries(path, tokenized_set, model, number=number, seed=training.seed)
        found = with_pseudo_queries(tokenized_set, run.pseudo_queries)
        made = len(found.retrieval_set.query_ids) - len(tokenized_set.retrieval_set.query_ids)
        logging.info("Pseudo-queries: %d documents without a judged query have one", made)
        return found

    def retrievers(self, model, over):
        from tf_smoothclir.two_tower.scorer import SetEncoder

        dense = SetEncoder(model, over.tokenized_set)(over.known_documents(self.name))
        settings, dims = over.settings.model, ()
        if over.settings.retrieval.retriever == self.name:
            dims = settings.shorter_dims
        cut = {f"{self.name}-{dim}": dense.cut_to(dim, settings.epsilon) for dim in dims}
        return {**cut, self.name: dense}

    def title(self, model):
        return "two towers"

    def facts(self, model, settings, training):
        chosen, form = settings.training, settings.model
        best = f"best {training['best_epoch']} by validation {chosen.select_metric}"
        objective, thresholds = chosen.objective, self.thresholds(model, settings)
        return {
            "towers": f"{_in_words(form.tower)}, {form.dim:,} dimensions, ε = {form.epsilon:g}",
            "loss": _in_words(form.loss if objective == "ranking" else objective),
            "thresholds": ", ".join(f"{value:.4g}" for value in thresholds),
            "epochs": f"{training['epochs']}, {best}",
            "training": f"{training['pairs']:,} pairs in {training['seconds_of_steps']:.0f} s,"
            f" {training['pairs_per_second']:,.0f} pairs/s",
        }

    def profiles(self, model, settings, positions):
        text = settings.text
        towers = {
            "queries": (model.query_tower, text.max_query_tokens),
            "documents": (model.document_tower, text.max_document_tokens),
        }
        if model.is_shared:
            towers = {"queries and documents": towers["documents"]}
        found = {
            label: tower.position_profile(min(positions, longest))
            for label, (tower, longest) in towers.items()
        }
        found = {label: profile for label, profile in found.items() if profile is not None}
        return {_PROFILES: ("positions_of_towers", found)} if found else {}

    def published(self, publication):
        from tf_smoothclir.publishing.exported_tower import ExportedTower
        from tf_smoothclir.text.evidence import word_evidence
        from tf_smoothclir.text.subword_encoder import text_encoder

        run, settings, towers = publication.run, publication.settings, {}
        for role in ROLES:
            vocabulary = run.vocabulary / f"{role}.txt"
            encoder = text_encoder(vocabulary, settings.text, role)
            asked = role == "query"
            towers[role] = ExportedTower(
                getattr(publication.models[self.name], f"{role}_tower"),
                encoder,
                epsilon=settings.model.epsilon,
                name=f"{role}_tower",
                table_type=publication.table_type,
                evidence=word_evidence(vocabulary, encoder, settings.text) if asked else None,
            )
        return Towers(towers.__getitem__, settings.model.dim, settings.model.epsilon)

    def exported_parts(self, published, others):
        return {role: published.load(role) for role in ROLES}

    def exported(self, models):
        return Towers.of_export(models) if models.server is None else SearchedTowers(models)

    def index_half(self, models, settings):
        from tf_smoothclir.index.dense_half import DenseHalf

        towers, data = models[self.name], models.manifest.data
        asked = functools.partial(training_query_vectors, towers, data)
        return DenseHalf(towers.encoder("document"), towers.dim, settings, asked)

    def open_half(self, directory, entry, hashes):
        from tf_smoothclir.index.dense_half import open_dense_half

        return open_dense_half(directory, entry, hashes)

    def cut_points(self, manifest):
        """Those of a hybrid are of its sum: vectors alone have the thresholds of the loss."""
        from tf_smoothclir.protocols.cut_points import CutPoints

        of_loss = CutPoints(manifest.thresholds, (), manifest.thresholds)
        return super().cut_points(manifest) or of_loss

    def scores(self, models, queries, documents):
        towers = models[self.name]
        of_query, of_document = map(towers.vectors, ROLES, (queries, documents))
        return (of_query * of_document).sum(axis=1)

    def explanation(self, models, query, document, role):
        from tf_smoothclir.search.explanation import explain

        towers, texts = models[self.name], dict(zip(ROLES, ([query], [document])))
        (other,) = (name for name in ROLES if name != role)
        (vector,) = towers.vectors(other, texts[other])
        tower = towers.explained(role)
        (words,) = tower.token_vectors(texts[role])
        return explain(words, vector, tower.epsilon)

    def retriever_over(self, models, retrieval_set):
        from tf_smoothclir.two_tower.scorer import DenseRetriever

        source, towers = retrieval_set.source, models[self.name]
        streams = zip(ROLES, (source.queries, source.documents))
        vectors = [towers.vectors(role, [t.text for t in texts()]) for role, texts in streams]
        return DenseRetriever(*vectors, retrieval_set.tie_order)

    def ranker(self, models, index):
        from tf_smoothclir.index.document_index import DocumentIndex
        from tf_smoothclir.search.engine_ranker import EngineRanker
        from tf_smoothclir.search.explanation import explain_by_vectors
        from tf_smoothclir.search.text_search import DenseRanker

        towers = models[self.name]
        read, explained = towers.read_queries(), towers.explained
        if isinstance(index, DocumentIndex):
            explain = functools.partial(explain_by_vectors, read, functools.lru_cache(explained))
            return DenseRanker(self.name, index, read, explain)
        return EngineRanker(index, encode_queries=read, open_tower=explained)


def _in_words(name: str) -> str:
    """The value of a flag for people, such as "average pooling"."""
    return _NAMES.get(name, name.replace("_", " "))
