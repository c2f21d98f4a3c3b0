"""The lexical model: what is learned from training pairs, and documents as it sees them."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tf_smoothclir.lexical.psq import BETA, impacts, spelling_mixed_in
from tf_smoothclir.lexical.words import PositionProfile, Words
from tf_smoothclir.storage import files
from tf_smoothclir.text.vocabulary import PADDING_ID
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error

_SETTINGS, _ARRAYS = "lexical.json", "lexical.npz"
_PARTS, _LOOKALIKE = ("values", "columns", "row_ends"), "lookalike_"  # of the arrays of a matrix
_REMEDY = "Restore the file, or train again"


@dataclasses.dataclass(frozen=True)
class _Choices:
    """A lexical model without its arrays, as it is saved."""

    # A profile of positions for each field; a flat one is among them.
    fields: tuple[PositionProfile, ...]
    feedback: float = 0.0  # weight of feedback; 0 for none
    seconds: float = 0.0
    dictionary: float = 0.0  # share of a person's dictionary in the table
    # What a training pair of a lower grade counted in learning the table, where one of the highest
    # counts 1.
    lower_grades: float = 0.0
    agreement: float = 0.0  # share of the counts of EM that both directions have to agree on
    in_order: bool = False  # whether words of pairs were read near the diagonal
    on_documents: bool = False  # whether the choices were made on documents, not on sentences
    # Scores are multiplied by (words of the document / mean length) to the power of it; 0 for
    # scores as they are.
    length_power: float = 0.0
    # Mean number of words of a document, or passage, of the collection it was learned on.
    mean_length: float = 1.0
    # Scores of documents in a language are multiplied by its factor; 1 for others.
    language_factors: dict[str, float] = dataclasses.field(default_factory=dict)
    # Documents of more words are searched as passages of so many; 0 for whole documents.
    passage_words: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class LexicalModel(_Choices):
    """A translation table, and how its evidence is weighed."""

    table: sp.csr_array  # `[document words, query words]` float32, T(w | t)
    lookalikes: sp.csr_array  # the same, how similar their spelling is
    background: np.ndarray  # `[query words]` float32, P(w)
    counts: np.ndarray  # `[query words]` float32, how often each is in training queries
    weights: np.ndarray  # `[fields, query words]` float32, what a query word counts in each field
    # `[document words]` float32, the counts that translations of each word come from; 0 where they
    # come from similar words or a dictionary.
    evidence: np.ndarray
    name: ClassVar[str] = "translation table"

    def passages(self, documents: Words) -> Words:
        """Documents as they are scored."""
        return documents.passages(self.passage_words)

    def impacts(self, passages: Words, spelling: sp.csr_array) -> sp.csr_array:
        """What each query word adds to each score, `[passages, query words]` float32."""
        fields, known = [passages.matrix(field) for field in self.fields], self.table.shape[0]
        new = passages.size - known  # words after all others, which stand for themselves
        of_known = [field[:, :known] for field in fields] if new else fields
        scores = impacts(of_known, self.mixed(spelling), self.background, self.weights)
        if new:
            of_new, alike = [field[:, known:] for field in fields], BETA * sp.eye_array(new)
            background, weights = (
                np.repeat(values[..., PADDING_ID : PADDING_ID + 1], new, axis=-1)
                for values in (self.background, self.weights)
            )
            scores = sp.hstack([scores, impacts(of_new, alike, background, weights)], format="csr")
        factors = self.factors(np.diff(passages.offsets), passages.languages)
        scores.data *= np.repeat(factors, np.diff(scores.indptr))
        return scores

    def mixed(self, spelling: sp.csr_array) -> sp.csr_array:
        """M(w | t), `[document words, query words]` float32."""
        return spelling_mixed_in(self.table, spelling + self.lookalikes)

    def factors(self, lengths: np.ndarray, languages: np.ndarray | None) -> np.ndarray:
        """Factors of scores of documents of so many words, in some languages, float32."""
        relative = np.maximum(lengths, 1) / self.mean_length
        factors = np.power(relative, self.length_power).astype(np.float32)
        if not self.language_factors or languages is None:
            return factors
        codes, places = np.unique(languages, return_inverse=True)
        of_codes = [self.language_factors.get(str(code), 1.0) for code in codes]
        return factors * np.array(of_codes, np.float32)[places]

    def save(self, directory: str | os.PathLike) -> None:
        """Writes the model into a new directory, whole or not at all."""
        with files.new_directory(Path(directory)) as temporary:
            with files.open_to_write(temporary / _ARRAYS) as file:
                names = "background", "counts", "weights", "evidence"
                arrays = {name: getattr(self, name) for name in names}
                for prefix, matrix in (("", self.table), (_LOOKALIKE, self.lookalikes)):
                    parts = matrix.data, matrix.indices, matrix.indptr
                    arrays |= zip((prefix + part for part in _PARTS), parts)
                np.savez(file, **arrays)
            files.write_json(temporary / _SETTINGS, self._chosen())

    def _chosen(self) -> dict[str, Any]:
        names = [field.name for field in dataclasses.fields(_Choices)]
        return dataclasses.asdict(_Choices(**{name: getattr(self, name) for name in names}))

    @classmethod
    def load(cls, directory: str | os.PathLike) -> LexicalModel:
        """Reads what `save` wrote."""
        chosen = files.read_record(Path(directory, _SETTINGS), _Choices, _REMEDY)
        path = Path(directory, _ARRAYS)
        arrays = files.read_arrays(path, "background", "weights")
        if arrays["weights"].shape != (len(chosen.fields), len(arrays["background"])):
            reason = f"its arrays do not fit (weights has the shape {arrays['weights'].shape})"
            raise input_error(path, reason, _REMEDY)
        model = _Saved.__new__(_Saved)
        model.__dict__.update(arrays, path=path, **vars(chosen))
        return model

    def choices(self) -> dict:
        """Choices made on validation, and their seconds, for `metrics.json`."""
        return {"translations": self.table.nnz, **self._chosen()}

    def facts(self) -> dict[str, str]:
        """Facts for the run report."""
        lower = f"; pairs of lower grades count {self.lower_grades:g}" if self.lower_grades else ""
        dictionary = f", {self.dictionary:.0%} of the dictionary" if self.dictionary else ""
        length = f"; scores by length^{self.length_power:g}" if self.length_power else ""
        if self.language_factors:
            factors = (f"{code} {value:.3g}" for code, value in self.language_factors.items())
            length += f"; scores by language times {', '.join(factors)}"
        if self.passage_words:
            length += f"; passages of {self.passage_words} words"
        if self.in_order:
            length += "; words of pairs in order"
        if self.agreement:
            length += f"; {self.agreement:.0%} of the counts by agreement"
        chosen = f"{self.fields[0]}; feedback {self.feedback:g}{dictionary}{lower}{length}"
        return {
            "translation table": f"{self.table.nnz:,} entries, in {self.seconds:.0f} s",
            "chosen on validation": chosen,
        }

    def describe(self) -> str:
        """Description in one line, for logs and reports."""
        return f"{self.table.nnz:,} translations, {self.fields[0]}, feedback {self.feedback:g}"


class _Saved(LexicalModel):
    """A saved model, whose matrices are read when something asks for them: a search does not."""

    path: Path

    @functools.cached_property
    def table(self) -> sp.csr_array:
        return self._matrix("")

    @functools.cached_property
    def lookalikes(self) -> sp.csr_array:
        return self._matrix(_LOOKALIKE)

    @functools.cached_property
    def counts(self) -> np.ndarray:
        return files.read_arrays(self.path, "counts")["counts"]

    @functools.cached_property
    def evidence(self) -> np.ndarray:
        return files.read_arrays(self.path, "evidence")["evidence"]

    def _matrix(self, prefix: str) -> sp.csr_array:
        names = [prefix + part for part in _PARTS]
        parts = tuple(map(files.read_arrays(self.path, *names).get, names))
        try:
            matrix = sp.csr_array(parts, shape=(len(parts[2]) - 1, len(self.background)))
            matrix.check_format()  # of all columns: compiled code reads wherever they say
        except (ValueError, TypeError) as error:
            reason = f"its arrays do not fit ({error})"
            raise input_error(self.path, reason, _REMEDY) from error
        return matrix
