"""Goes the whole way on the built-in toy world: tokenise, train, evaluate, export, search.

The toy world is generated and readable; nothing is downloaded. The queries are English ones that
training has not seen; the documents are French.
"""

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.command_line.setting_flags import FLAGS
from tf_smoothclir.settings.presets import preset_settings

setting_flags.define_run_directory("runs/quickstart")
SETTINGS = preset_settings("best", {"toy_entities": 3000})


def main(_argv) -> None:
    """Goes the whole way."""
    from tf_smoothclir.command_line.quickstart import train_export_search

    train_export_search(SETTINGS, FLAGS.output_dir, overwrite=FLAGS.overwrite)


def run() -> None:
    """Entry point of `smoothclir-quickstart`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
