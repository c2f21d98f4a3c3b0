"""Errors name flags in commands, arguments in Python."""

import pytest

import tf_smoothclir as sc
from tf_smoothclir.utils.errors import InputError, name_flags


@pytest.fixture
def in_python():
    name_flags(False)
    yield
    name_flags()


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("of_command", "of_python"),
    [
        ("--columns=text=a: no. Leave --dim out", "columns=text=a: no. Leave dim out"),
        ("--data_dir=d (--top_k, --index_dir)", "data=d (k, index)"),
        ("run smoothclir-evaluate --run_dir=a --split=b, or --nofull", None),
        ("--normalised or --noverify or --plugin=m", "normalised or --noverify or --plugin=m"),
        ("a--b, x --1 and ---", "a--b, x --1 and ---"),
    ],
)
def test_an_error_names_arguments(of_command, of_python):
    if of_python is None:
        of_python = of_command.replace("--nofull", "full=False")
    assert str(InputError(of_command)) == of_python
    assert str(InputError(of_python)) == of_python  # again, as a message in another one
    name_flags()
    assert str(InputError(of_command)) == of_command


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": {"texts": "body"}}, "^columns=texts=body: there is no such column"),
        ({"passage_words": (1,)}, "^passage_words must be falling numbers"),
        ({"query_language": "1"}, "^query_language="),
    ],
)
def test_training_from_python_names_arguments(settings, message):
    with pytest.raises(InputError, match=message):
        sc.train(queries=["a"], documents=["b"], judgments=[("0", "0", 1)], **settings)
