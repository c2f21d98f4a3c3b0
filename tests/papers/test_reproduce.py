"""What smoothclir-reproduce shares with other commands."""

from tests.command_line import test_command as every_command
from tests.command_line.test_command import commands as commands  # a fixture
from tf_smoothclir.papers import li2018 as li2018  # its settings are flags of the command

MODULE = "tf_smoothclir.papers.reproduce"


def test_help_shows_every_setting_with_its_default(commands):
    groups = ["text", "model", "training", "retrieval", "adversarial", "max_lstm"]
    every_command.check_help(commands, MODULE, groups, epochs=10)


def test_mistakes_are_found_before_tensorflow_is_loaded(tmp_path):
    every_command.test_commands_that_do_not_need_tensorflow_do_not_import_it(
        MODULE, ["table9"], tmp_path
    )
    every_command.test_a_missing_directory_is_named_before_tensorflow_is_loaded(
        MODULE, ["table1", "--data_dir=nowhere"], tmp_path
    )
