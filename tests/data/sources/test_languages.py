"""Sets of several languages, in every form, and what is said of the languages of texts."""

import json

import pytest

from tests.cases import cases
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources import languages, opening
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError

# Document 1 is there in both languages, and so is query 7.
WIKI = {
    "wiki_en.queries": "7\tWater\ta liquid\n8\tMoon\ta satellite\n9\tSun\ta star\n",
    "wiki_it.queries": "7\tStella\tuna stella\n",
    "wiki_fr.documents": "1\tEau\tun liquide\n2\tLune\tun satellite\n",
    "wiki_he.documents": "1\tשמש\tכוכב\n",
    "wiki_sv.documents": "1\tMåne\ten satellit\n",  # without judgments
    "en2fr.rel": "7\t1\t2\n8\t2\t2\n",
    "en2he.rel": "8\t1\t1\n",
    "it2he.rel": "7\t1\t2\n",
    "splits.tsv": "7\ttrain\n8\ttest\n9\tvalidation\n",
}
QUERIES = [("en:7", "en"), ("en:8", "en"), ("it:7", "it")]
DOCUMENTS = [("fr:1", "fr"), ("fr:2", "fr"), ("he:1", "he")]
JUDGMENTS = [("en:7", "fr:1", 2), ("en:8", "fr:2", 2), ("en:8", "he:1", 1), ("it:7", "he:1", 2)]
TEXTS = {"en:7": "a", "en:8": "b", "it:7": "c", "fr:1": "un", "fr:2": "du", "he:1": "כוכב"}
MISSING = "has no documents in de; available: fr, he"


def table(rows, kind, columns):
    if kind == "jsonl":
        return "".join(json.dumps(dict(zip(columns, row))) + "\n" for row in rows)
    mark = {"csv": ";", "tsv": "\t"}[kind]
    return "".join(mark.join(map(str, row)) + "\n" for row in [columns, *rows])


def own_files(kind):
    cells = {"he": "HE", "fr": "French", "it": "it", "en": "en "}
    files = {}
    for name, texts in (("queries", QUERIES), ("documents", DOCUMENTS)):
        rows = [(id_, TEXTS[id_], cells[code]) for id_, code in texts]
        files[f"{name}.{kind}"] = table(rows, kind, ("id", "text", "language"))
    judged = table(JUDGMENTS, kind, ("query_id", "document_id", "grade"))
    return {**files, f"judgments.{kind}": judged}


def files_of_languages(kind):
    def texts(stream, among, code):
        rows = [(id_[3:], TEXTS[id_]) for id_, own in among if own == code]
        return {f"{stream}.{kind}": table(rows, kind, ("id", "text"))}

    files = {}
    for code in ("en", "it"):
        files |= texts(f"queries_{code}", QUERIES, code)
    for code in ("fr", "he"):
        files |= texts(f"documents.{code}", DOCUMENTS, code)
        judged = [(q, d[3:], g) for q, d, g in JUDGMENTS if d.startswith(code)]
        files[f"judgments.{code}.{kind}"] = table(judged, kind, ("qid", "docno", "rel"))
    return files


FORMS = {kind: own_files(kind) for kind in ("tsv", "csv", "jsonl")}
FORMS |= {"wiki": WIKI, "files": files_of_languages("tsv")}


def opened(make, files, **settings):
    return opening.source_of(DataSettings(data_dir=str(make(files)), **settings))


@cases("form", *FORMS)
def test_every_form_of_several_languages_is_the_same_set(make, form):
    source = opened(make, FORMS[form])
    assert [(text.id, text.language) for text in source.queries()] == QUERIES
    assert [(text.id, text.language) for text in source.documents()] == DOCUMENTS
    assert [judgment[:3] for judgment in sorted(source.judgments())] == JUDGMENTS
    loaded = RetrievalSet.load(source)
    assert loaded.document_languages.codes == ("fr", "he")
    assert loaded.document_languages.rows.tolist() == [0, 0, 1]
    assert str(loaded.query_languages) == "en, it"
    assert f":{2 if form in ('wiki', 'jsonl') else 3}" in source.place("documents", 1)[-4:]


@cases("form", *FORMS)
@cases("codes", "he", "He,fr", "all")
def test_the_languages_that_are_named_are_read(make, form, codes):
    source = opened(make, FORMS[form], document_language=codes, query_language="en")
    documents = DOCUMENTS[2:] if codes == "he" else DOCUMENTS
    assert [text.language for text in source.documents()] == [code for _, code in documents]
    judged = [one for one in JUDGMENTS if one[0][:2] == "en" and (codes != "he" or one[2] == 1)]
    assert len(RetrievalSet.load(source).grades) == len(judged)
    if form == "wiki":  # files of other languages are not looked at
        prefix = "" if codes == "he" else "fr:"
        assert next(source.documents()).id == f"{prefix}1"
    elif form != "files":
        line = 2 + (codes == "he") * 2 - (form == "jsonl")
        assert source.place("documents", 0).endswith(f":{line}")


def test_splits_are_those_of_each_query_and_ids_stay_as_they_are_where_none_repeats(make):
    source = opened(make, WIKI)
    assert source.splits() == {"en:7": "train", "it:7": "train", "en:8": "test"}
    assert source.name == "toy-multi-multi"
    plain = {**WIKI, "wiki_he.documents": "3\tשמש\tכוכב\n", "en2he.rel": "8\t3\t1\n"}
    source = opened(make, plain, query_language="en")
    assert [text.id for text in source.documents()] == ["1", "2", "3"]
    assert [text.id for text in source.queries()] == ["7", "8"]


def test_one_file_of_judgments_has_to_tell_apart_what_repeats(make):
    files = {name: text for name, text in FORMS["files"].items() if "judgments" not in name}
    judged = "en:7\t1\t2\n"
    with pytest.raises(InputError, match=r"document '1' is not among.* Call it fr:1 or he:1\."):
        RetrievalSet.load(opened(make, {**files, "judgments.tsv": judged}))
    judged = judged.replace("\t1", "\the:1")
    assert RetrievalSet.load(opened(make, {"judgments.tsv": judged})).document_rows == [2]


@cases(
    "files, codes, message",
    (WIKI, "de", f"{MISSING}, sv. Give --document_language=fr or several"),
    (WIKI, "sv,fr", r"en2sv\.rel: there is no such file; next to it: en2fr"),
    (WIKI | {"wiki_sv.queries": "7\ta\tb\n"}, "fr", "sv2fr.rel: there is no such file"),
    *((FORMS[form], "de,fr", MISSING) for form in ("tsv", "jsonl", "files")),
    (FORMS["tsv"], "klingon", r"klingon is not an ISO 639 code\. Give one of two letters"),
    (FORMS["tsv"], "german", r"ISO 639 code\. Give --document_language=de\."),
    (FORMS["tsv"], "qq", "qq is not an ISO 639 code. Give one of two letters"),
    (FORMS["csv"] | {"documents.csv": "id,text,lang\n1,un,qq\n"}, "", r"'qq', not an ISO 639"),
    (FORMS["tsv"] | {"documents.tsv": "1\tun\n"}, "de,fr", "Give it a column named language"),
    (FORMS["csv"] | {"documents.csv": "id,text,lang\n1,un,Old Norse\n"}, "", r"csv:2: the lan"),
)
def test_a_missing_language_is_an_error_that_names_those_there(make, files, codes, message):
    queries = "sv,en" if "wiki_sv.queries" in files else ""
    with pytest.raises(InputError, match=message):
        list(opened(make, files, document_language=codes, query_language=queries).documents())


def test_a_language_that_nobody_gives_is_unknown(make, caplog):
    texts = {"queries.tsv": "q\tred apple\n", "documents.tsv": "d\tКрасное яблоко\n"}
    files = {**texts, "judgments.tsv": "q\td\t2\n"}
    source = opened(make, files)
    assert (source.name, source.document_language) == ("toy", "")
    assert str(RetrievalSet.load(source).document_languages) == "unknown"
    RetrievalSet.load(opened(make, files, document_language="ru"))
    assert not caplog.text
    RetrievalSet.load(opened(make, files, document_language="fr"))
    message = "--document_language is fr, but most letters of the documents are Cyrillic"
    assert message in caplog.text
    assert "--query_language" not in caplog.text


@cases("text", "a <b>b</P>", "a&nbsp;b", "<br /> a", "&#x27;a&#39;")
@cases("plain", 3, 4)
def test_html_is_named_where_more_than_a_fifth_of_the_texts_have_it(caplog, text, plain):
    languages.warn_of_texts("toy", "documents", "", [text, *["a < b & c > d, R&D; <T>"] * plain])
    assert ("of the first 4 documents, 1 have HTML such as" in caplog.text) == (plain == 3)


@cases(
    "text, language, other",
    ("Ein roter Apfel", "ru", "Latin"),
    ("Красное яблоко", "fr", "Cyrillic"),
    ("赤いりんご と アップル", "ja", ""),
    ("مرحبا Hi", "fr", "Arabic"),  # 5 letters of 7
    ("Hello مر", "fr", ""),  # 5 letters of 7
    ("", "ru", ""),
    ("Красное", "xx", ""),  # nobody knows what xx is written in
    ("ᏣᎳᎩ", "fr", ""),  # nor which language of the list this is
    ("Красное", "de-ch", "Cyrillic"),
)
def test_the_alphabet_of_most_letters_tells(text, language, other):
    assert languages.other_alphabet([text, ""], language) == other
