"""A re-ranker: it orders the first ranks of the family that finds them."""

import dataclasses

from tf_smoothclir.families.family import Family
from tf_smoothclir.families.lexical import word_vectors
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.scorer import TwoStageRetriever
from tf_smoothclir.publishing.export_directory import exported_versions, part_dir
from tf_smoothclir.utils.errors import input_error


class Reranked(Family):
    """A `Reranker`, published as `SecondStage`, over what `--retriever` ranks first."""

    kept_in = "reranker"
    missing = "has not learned its re-ranker yet"

    def learn(self, over):
        from tf_smoothclir.interaction.inputs import WordCodes
        from tf_smoothclir.interaction.reranker_learning import learn_reranker

        retrieval = over.settings.retrieval
        return learn_reranker(
            retrieval.reranker,
            WordCodes.of(*word_vectors(over)),
            over.tokenized_set,
            over.retrievers[retrieval.retriever],
            depth=retrieval.rerank_depth,
            seed=over.settings.training.seed,
        )

    def read(self, path):
        from tf_smoothclir.interaction.reranker import Reranker

        return Reranker.load(path)

    def retrievers(self, model, over):
        retrieval = over.settings.retrieval
        scorer = model.scorer(model.texts(over.tokenized_set))
        two_stages = TwoStageRetriever(
            over.retrievers[retrieval.retriever],
            scorer,
            over.retrieval_set,
            ranks=retrieval.rerank_depth,
            weight=model.weight,
        )
        return {self.name: two_stages}

    def title(self, model):
        return ""

    def metrics(self, model):
        return {"reranker": dataclasses.asdict(model.choices)}

    def facts(self, model, settings, training):
        return {"re-ranker, its weight chosen on validation": model.describe()}

    def published(self, publication):
        from tf_smoothclir.publishing.exported_reranker import SecondStage, StageSettings
        from tf_smoothclir.training.run_models import load_cut_points

        reranker, run = publication.models[self.name], publication.run
        if not reranker.weight:
            return None
        cut_points = load_cut_points(run, publication.models)[self.name]
        choices, text = reranker.choices, publication.settings.text
        reranker = reranker.chosen(  # the texts of the run may be shorter than what it can read
            query_length=min(choices.query_length, text.max_query_tokens),
            document_length=min(choices.document_length, text.max_document_tokens),
        )
        depth = publication.settings.retrieval.rerank_depth
        return SecondStage(
            reranker, run.vocabulary, StageSettings(depth, cut_points, text.pretokenized)
        )

    def exported_parts(self, published, others):
        from tf_smoothclir.publishing.exported_reranker import ExportedReranker

        return {"reranker": ExportedReranker(published)}

    def exported(self, models):
        from tf_smoothclir.publishing.exported_reranker import DIRECTORY, SecondStage

        version = models.manifest.version
        if version not in exported_versions(models.export_dir, "reranker"):
            raise input_error(
                part_dir(models.export_dir, "reranker") / str(version),
                "the index is of an export with a re-ranker, which is not there",
                "Copy all of the export, or name with --retriever what ranks without",
            )
        return SecondStage.load(models.part("reranker")[0] / DIRECTORY)

    def retriever_over(self, models, retrieval_set):
        stage, first = models[self.name], family(models.retriever)
        return TwoStageRetriever(
            first.retriever_over(models, retrieval_set),
            stage.scorer(retrieval_set.source),
            retrieval_set,
            ranks=stage.settings.depth,
            weight=stage.reranker.weight,
        )

    def ranker(self, models, index):
        from tf_smoothclir.search.second_stage import SecondStageRanker  # it takes seconds

        first = family(index.manifest.retriever).ranker(models, index)
        return SecondStageRanker(first, models[self.name])
