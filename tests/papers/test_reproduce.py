"""What smoothclir-reproduce shares with other commands."""

import pytest

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


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--seeds=1,2", "--retriever=hybrid"], "--seeds=1,2 --retriever=hybrid: the experiments"),
        (
            ["--word_vectors=towers", "--matching_folds=5"],
            "--word_vectors=towers --matching_folds=5: towers are trained",
        ),
        (["--tune_epochs=0", "--theta_1=0.1"], "--tune_epochs=0 --theta_1=0.1: --tune_epochs=0"),
        (["--tune_epochs=0", "--theta_2=0.6"], "--tune_epochs=0 --theta_2=0.6: --tune_epochs=0"),
    ],
)
def test_flags_of_the_command_that_do_not_go_together(commands, tmp_path, arguments, where):
    output_dir = tmp_path / "out"
    done = commands.run(MODULE, "table2", *arguments, f"--output_dir={output_dir}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {where}")
    assert not output_dir.exists()
