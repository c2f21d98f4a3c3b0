"""What smoothclir-reproduce shares with other commands, and the mistakes that it finds."""

from tests.cases import cases
from tests.command_line import test_command as every_command
from tf_smoothclir.papers import li2018 as li2018  # its settings are flags of the command

MODULE = "tf_smoothclir.papers.reproduce"


def test_help_shows_every_setting_with_its_default(commands):
    groups = ["data", "text", "model", "training", "retrieval", "encoder", "adversarial"]
    every_command.check_help(commands, MODULE, groups, epochs=10)


def test_mistakes_are_found_before_tensorflow_is_loaded(tmp_path):
    check = every_command.test_tensorflow_is_not_loaded_without_need
    check(MODULE, ["table9"], "unknown: table9", tmp_path)
    check(MODULE, ["table1", "--data_dir=nowhere"], every_command.NOWHERE, tmp_path)


@cases(
    "arguments, message",
    ("", "none is named"),
    ("table2 --seeds=13,13", "--seeds=13,13"),
    ("table2 --seeds=x", "--seeds=x: must be a list of numbers"),
    ("table2 --seeds=1,2 --retriever=hybrid", "--seeds=1,2 --retriever=hybrid: the exp"),
    ("table2 --theta_1=0,0", "--theta_1=0.0,0.0: the values must be different numbers"),
    ("table2 --theta_1=0.9 --theta_2=0.5", "--theta_1, --theta_2"),
    ("table2 --thresholds=0.5", "--thresholds=0.5: the experiments of the paper use"),
    ("yu2020_table3 --word_vectors=given", "--word_vectors=given --query_embeddings"),
    ("yu2020_table3 --word_vectors=mapped", "there are no vectors"),
    ("table1 li2018_table2 --epochs=1", "li2018_table2, XCNN: --objective=xcnn --opening_epo"),
    ("table2 --query_embeddings=no.vec", "/no.vec: there is no such file. Check the path."),
    ("table3 --token_weights=learned", "table3, DSSM-CNN: --token_weights=learned --tower=cnn"),
    ("table2 --tune_epochs=0 --theta_1=0", "--tune_epochs=0 --theta_1=0.0: --tune_epochs=0"),
)
def test_a_mistake_is_an_error_message_and_leaves_nothing(commands, tmp_path, arguments, message):
    done = commands.run(MODULE, *arguments.split(), f"--output_dir={tmp_path / 'out'}")
    assert done.returncode == 1
    assert done.stderr.startswith(("error: ", "FATAL Flags parsing error: flag --seeds=x: "))
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
