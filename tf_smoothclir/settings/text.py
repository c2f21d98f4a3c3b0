"""Settings of the text: vocabularies, lengths and n-grams."""

import dataclasses

from tf_smoothclir.settings.base import Rule, Settings, setting


def one_file_for_both(kind: str) -> Rule:
    """A rule that refuses two files, of queries and of documents, for one vocabulary."""
    return Rule(
        lambda shared, *paths: shared and len({*paths} - {""}) > 1,
        "both languages share their words, which cannot be those of two files",
        "Give one file, for both languages",
        ("shared_vocabulary", f"query_{kind}", f"document_{kind}"),
    )


WHOLE_DOCUMENT = 1 << 20  # tokens: the first million of a document
RULES = (
    Rule(
        lambda text_fields, passage_words: "title" in text_fields and not passage_words,
        "titles are read where documents are read to their ends",
        "Add --passage_words=300,100,50, or --text_fields=body",
    ),
    Rule(
        lambda min_ngram, max_ngram: max_ngram < min_ngram,
        "the longest n-gram would be shorter than the shortest",
        "Raise --max_ngram or lower --min_ngram",
    ),
    one_file_for_both("vocabulary"),
)


@dataclasses.dataclass(frozen=True)
class TextSettings(Settings):
    """How texts become token ids."""

    max_query_tokens: int = setting(200, "Cut queries after this many tokens.", minimum=1)
    max_document_tokens: int = setting(
        200, "Cut documents after this many tokens (paper: 200).", minimum=1
    )
    passage_words: tuple[int, ...] = setting(
        (),
        "Lexical models read whole documents, and search those of more words as overlapping"
        " passages, of which the best one counts. Lengths to choose from on validation, falling:"
        " the first one is for all, the others where most documents have several passages. Empty:"
        " what follows --max_document_tokens is not read (paper). Towers read no more in any case.",
    )
    vocabulary_size: int = setting(
        100_000, "Largest number of entries in each vocabulary (paper: 100,000).", minimum=3
    )
    text_fields: tuple[str, ...] = setting(
        ("body",),
        "What lexical models read of a document: body (paper), or title,body, where words of titles"
        " count little, or more if that is better on validation. Towers read the body.",
    )
    pretokenized: bool = setting(
        False,
        "Texts are split into words beforehand, with spaces between them: words are what stands"
        " between white space, as it is. Queries of searches are given in the same way.",
    )
    shared_vocabulary: bool = setting(
        False,
        "One vocabulary and one table for both languages: what is spelled alike shares a vector.",
    )
    query_vocabulary: str = setting(
        "",
        "File with the words of the query vocabulary, one a line, the most frequent first, in place"
        " of those of the training queries. At most --vocabulary_size are read.",
        is_path=True,
    )
    document_vocabulary: str = setting(
        "", "The same for the documents, in place of the words of the collection.", is_path=True
    )
    min_count: int = setting(1, "Words that occur less often count as unknown.", minimum=1)
    ngram_buckets: int = setting(
        0,
        "Rows of an embedding table of character n-grams, such as 100,000, whose vectors are added"
        " to those of the words. 0: words only (paper).",
        minimum=0,
    )
    ngram_rows_per_word: int = setting(
        0,
        "--ngram_buckets is at most so many rows per word of the vocabulary, so that a small set"
        " makes a small model. 0: no such limit.",
        minimum=0,
    )
    min_ngram: int = setting(
        3,
        "Length of the shortest n-gram of --ngram_buckets; a word has a start and an end.",
        minimum=1,
    )
    max_ngram: int = setting(
        5,
        "Length in characters of the longest n-gram of --ngram_buckets.",
        minimum=1,
        maximum=16,  # the encoder without TensorFlow hashes 64 bytes
    )

    def __post_init__(self):
        super().__post_init__()
        lengths = self.passage_words
        if any(length < 2 for length in lengths) or list(lengths) != sorted({*lengths})[::-1]:
            raise ValueError(
                "--passage_words must be falling numbers from 2 on, such as 200,100,50, but is"
                f" {','.join(map(str, lengths))}."
            )
        if self.text_fields not in (("body",), ("title", "body")):
            raise ValueError(
                f"--text_fields must be body or title,body, but is {','.join(self.text_fields)}."
            )

    def ngram_rows(self, words: int) -> int:
        """The rows of the table of n-grams beside a vocabulary of so many words."""
        if not self.ngram_rows_per_word:
            return self.ngram_buckets
        return min(self.ngram_buckets, self.ngram_rows_per_word * words)

    def max_tokens(self, role: str) -> int:
        """The length limit in tokens of a "query" or "document"."""
        return self.max_query_tokens if role == "query" else self.max_document_tokens

    @property
    def reads_titles(self) -> bool:
        """Whether titles are read."""
        return "title" in self.text_fields

    def read_tokens(self, role: str) -> int:
        """The same as lexical models read it."""
        whole = role == "document" and self.passage_words
        return WHOLE_DOCUMENT if whole else self.max_tokens(role)

    def given_vocabulary(self, role: str) -> str:
        """The file with the vocabulary of a "query" or "document"; empty for none."""
        if self.shared_vocabulary:
            return self.query_vocabulary or self.document_vocabulary
        return self.query_vocabulary if role == "query" else self.document_vocabulary
