"""Exports a run: SavedModels for TensorFlow Serving, and the lexical model of a run that has one.

query_tower and document_tower take raw strings and return smooth-normalised vectors. lexical_model
has the translation table and all that goes with it, for the index. search takes a query and returns
the best documents with scores and grades, for collections that fit in a model.
Each export gets the next integer version. It is published after a fresh process has loaded all
models and their answers agree with the trained model. Next to them, model_card-<version>.md says
what was trained on what, how good it is, and how to load it; models.config, written with the first
version, says what TensorFlow Serving loads.
"""

from tf_smoothclir.command_line import command, shipping_flags
from tf_smoothclir.command_line.setting_flags import FLAGS

shipping_flags.define_export_flags()


def main(_argv) -> None:
    """Exports the run."""
    from tf_smoothclir.publishing.verified_export import export_verified

    options = shipping_flags.export_options()
    for path in export_verified(FLAGS.run_dir, FLAGS.export_dir, verify=FLAGS.verify, **options):
        print(path)


def run() -> None:
    """Entry point of `smoothclir-export`."""
    command.run_main(main, __doc__)


if __name__ == "__main__":
    run()
