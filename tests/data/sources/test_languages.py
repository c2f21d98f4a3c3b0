"""Names instead of codes of languages, and texts in an alphabet of another language."""

import pytest

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.languages import other_alphabet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"document_language": "german"}, "ISO 639-1 code. Give --document_language=de."),
        ({"document_language": "French"}, "ISO 639-1 code. Give --document_language=fr."),
        ({"query_language": "English"}, "ISO 639-1 code. Give --query_language=en."),
        ({"document_language": "klingon"}, "Give one of two letters, such as de for German."),
        ({"document_language": ""}, "Give one of two letters"),
        ({"document_language": "zu"}, "zu"),  # a code, but the toy world has no such documents
    ],
)
def test_a_language_that_is_no_code_or_not_there_is_refused(changes, message):
    with pytest.raises(InputError) as error:
        source_of(DataSettings(**changes))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "language", "other"),
    [
        ("Ein roter Apfel", "de", ""),
        ("Ein roter Apfel", "ru", "Latin"),
        ("Красное яблоко", "fr", "Cyrillic"),
        ("Красное яблоко", "uk", ""),
        ("紅蘋果", "zh", ""),
        ("紅蘋果", "ja", ""),
        ("赤いりんご と アップル", "ja", ""),
        ("μήλο", "en", "Greek"),
        ("사과", "zh", "Hangul"),
        ("مرحبا Hi", "fr", "Arabic"),  # 5 letters of 7
        ("Hello مر", "fr", ""),  # 5 letters of 7
        ("12 !? 34", "ru", ""),
        ("", "ru", ""),
        ("Красное", "xx", ""),  # nobody knows what xx is written in
        ("ᏣᎳᎩ", "fr", ""),  # nor which language of the list this is
    ],
)
def test_the_alphabet_of_most_letters_tells(text, language, other):
    assert other_alphabet([text, ""], language) == other


def test_a_wrong_language_of_documents_is_noticed(tmp_path, caplog):
    (tmp_path / "queries.tsv").write_text("q\tred apple\n")
    (tmp_path / "documents.tsv").write_text("d\tКрасное яблоко\n")
    (tmp_path / "judgments.tsv").write_text("q\td\t2\n")
    RetrievalSet.load(source_of(DataSettings(data_dir=str(tmp_path), document_language="ru")))
    assert not caplog.text
    RetrievalSet.load(source_of(DataSettings(data_dir=str(tmp_path), document_language="fr")))
    assert (
        "--document_language is fr, but most letters of the documents are Cyrillic" in caplog.text
    )
    assert "--query_language" not in caplog.text
