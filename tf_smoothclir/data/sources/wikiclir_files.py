"""Retrieval sets in the file layout of WikiCLIR (Sasaki et al. 2018); see `docs/training.md`.

In the published archive, as `ir_datasets` and the code of Liu et al. (2020) read it, all languages
share `english/wiki_en.queries`: the queries of a language are those that its judgments refer to.
Other folders have the English name of the language; Simple English has the code `simple`. Grade 2
is the same page, 1 a mutually linked page. Texts are lower-cased; many begin with a space.
"""

import functools
import hashlib
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources.cells import id_of
from tf_smoothclir.data.sources.columns import TITLED_TEXTS
from tf_smoothclir.data.sources.file_source import FileSource, checked_directory, table_named
from tf_smoothclir.data.sources.languages import check_among, codes_of, plain_code
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.utils.errors import input_error


def document_languages(directory: Path) -> list[str]:
    """The languages of all `wiki_<language>.documents` in a directory or its folders."""
    return sorted(_files(directory, "documents"))


class WikiClirDirectory(FileSource):
    """A set in the layout of WikiCLIR: all files in one directory, or in folders as published.

    The text is the third column, the title `Text.title`; `splits.tsv` (query_id, split) is
    optional. If languages share one queries file, queries without a judgment in the chosen ones
    are left out; without languages, the set has all that have judgments.
    """

    titles_are_answers = True
    roles = FileSource.roles | dict.fromkeys(("queries", "documents"), TITLED_TEXTS)

    def __init__(
        self, directory: str | Path, document_language: str = "", query_language: str = ""
    ) -> None:
        directory = checked_directory(directory)
        documents, queries = (_files(directory, stream) for stream in ("documents", "queries"))
        wanted = codes_of("document_language", document_language)
        asked = codes_of("query_language", query_language)
        check_among("document_language", wanted, documents, directory)
        check_among("query_language", asked, queries, directory)
        if not queries:
            reason = "there is no wiki_<language>.queries"
            raise input_error(directory, reason, "Put the queries there")
        # Judgments -> languages of the queries and of the documents.
        pairs = {
            documents[d].with_name(f"{_raw(queries[q])}2{_raw(documents[d])}.rel{end}"): (q, d)
            for end in ("", ".gz")
            for d in wanted or documents
            for q in asked or queries
        }
        there = {path: pair for path, pair in pairs.items() if path.is_file()}
        used = [{pair[side] for pair in there.values()} for side in (0, 1)]
        missing = [{*asked} - used[0], {*wanted} - used[1]]  # of those that are named
        if any(missing) or not there:
            wrong = (path for path, (q, d) in pairs.items() if q in missing[0] or d in missing[1])
            path = next(wrong, min(pairs))
            others = sorted(file.name for file in path.parent.glob("*2*.rel"))
            reason = f"there is no such file; next to it: {', '.join(others) or 'no *2*.rel'}"
            remedy = "Put the judgments there, or choose languages that have judgments"
            raise input_error(path, reason, remedy)
        if unjudged := set() if wanted else {*documents} - used[1]:
            languages = ", ".join(sorted(unjudged))
            logging.info("%s: left out, without judgments: documents in %s", directory, languages)
        chosen = [sorted(codes) for codes in used]
        super().__init__(directory, *(",".join(codes) for codes in reversed(chosen)))
        self.files = {
            "queries": [queries[code] for code in chosen[0]],
            "documents": [documents[code] for code in chosen[1]],
            "judgments": list(there),
        }
        self.sides = there
        for stream, codes in zip(self.files, chosen):
            self.languages |= dict(zip(self.files[stream], codes))
        folders = sorted({path.parent for path in self.files["documents"]})
        if splits := list(filter(None, (table_named(folder, "splits") for folder in folders))):
            self.files["splits"] = splits
        # Which queries it has then depends on other languages' documents too, which are no files
        # of it.
        self._queries_are_shared = any(
            path.parent not in folders for path in self.files["queries"]
        ) or any(len(list(folder.glob("wiki_*.documents*"))) > 1 for folder in folders)

    def _texts(self, stream, path):
        language, prefix = self.languages[path], self._prefix(stream, self.languages[path])
        is_filtered = stream == "queries" and self._queries_are_shared
        wanted = self._judged_queries if is_filtered else None
        rows, place = self._rows(path, TITLED_TEXTS)
        for line, (id_, text, title, _) in rows:
            if wanted is None or prefix + id_ in wanted:
                yield line, Text(prefix + id_of(id_, "id", place, line), title, text, language)

    @functools.cached_property
    def _judged_queries(self) -> set[str]:
        return {judgment.query_id for judgment in self.judgments()}

    def _splits(self, path):
        languages = [self.languages[queries] for queries in self.files["queries"]]
        prefixes = list(dict.fromkeys(self._prefix("queries", code) for code in languages))
        ids = wanted = None
        if self._queries_are_shared or len(prefixes) > 1:
            ids = {
                self._prefix("queries", self.languages[queries]) + id_
                for queries in self.files["queries"]
                for _, (id_, *_) in self._rows(queries, TITLED_TEXTS)[0]
            }
            wanted = self._judged_queries if self._queries_are_shared else ids
        for line, (query_id, split) in super()._splits(path):
            named = [prefix + query_id for prefix in prefixes]
            there = [full_id for full_id in named if ids is None or full_id in ids]
            for full_id in there or named[:1]:  # of no language: whoever loads the set is told
                if wanted is None or full_id in wanted or not there:
                    yield line, (full_id, split)

    def fingerprint(self) -> str:
        of_files = super().fingerprint()
        if not self._queries_are_shared:
            return of_files
        return hashlib.sha256(f"{of_files} shared".encode()).hexdigest()


def _files(directory: Path, stream: str) -> dict[str, Path]:
    """Language -> its file of a stream, in a directory or in one of its folders."""
    names = f"wiki_*.{stream}.gz", f"wiki_*.{stream}"  # the last one counts
    paths = [path for name in names for path in sorted(directory.glob(f"*/{name}"))]
    paths += [path for name in names for path in sorted(directory.glob(name))]
    return {plain_code(_raw(path)): path for path in paths}


def _raw(path: Path) -> str:
    """The language of `wiki_<language>.documents`, as it is written."""
    return path.name.removeprefix("wiki_").partition(".")[0]
