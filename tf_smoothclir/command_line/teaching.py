"""The work of smoothclir-teach, by its flags."""

from __future__ import annotations

from pathlib import Path

from tf_smoothclir.command_line.setting_flags import FLAGS, given_settings, group_from_flags
from tf_smoothclir.data.sources.memory import write_set
from tf_smoothclir.data.sources.opening import query_log_of
from tf_smoothclir.settings.data import LANGUAGES, DataSettings, EncoderSettings
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.utils.errors import input_error


def teach_by_flags() -> None:
    """Writes a set with the judgments of an encoder; trains on it and exports, if so wanted."""
    path = Path(FLAGS.output_dir)
    if path.exists() and not FLAGS.overwrite:
        remedy = "Give another --output_dir, or --overwrite"
        raise input_error(f"--output_dir={path}", "it is there already", remedy)
    if not FLAGS.encoder:
        remedy = "Give one, such as http://localhost:8000/v1; --help lists the kinds"
        raise input_error("--encoder", "there is no teacher", remedy)
    given = given_settings()
    of_data = {name: given.pop(name) for name in DataSettings().values() if name in given}
    settings = preset_settings("lexical", of_data)
    source = query_log_of(settings.data)
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
    from tf_smoothclir.foreign_encoders.teaching import taught

    encoder = encoder_of(group_from_flags(EncoderSettings))
    judged = taught(source, EncodedSet.of(encoder, source, settings.data.cache_dir), settings)
    write_set(judged, path, judged.splits(), replace=FLAGS.overwrite)
    then = f" Train with smoothclir-train --data_dir={path}" if not FLAGS.run_dir else ""
    print(f"{path}: {encoder.name} judged {judged.labelled:,} queries.{then}")
    if FLAGS.run_dir:
        beside = {name: of_data[name] for name in (*LANGUAGES, "cache_dir") if name in of_data}
        given = {n: value for n, value in given.items() if n not in EncoderSettings().values()}
        _train_and_export({**given, **beside, "data_dir": str(path)})


def _train_and_export(given: dict[str, object]) -> None:
    from tf_smoothclir.evaluation.report import print_results
    from tf_smoothclir.publishing.verified_export import export_verified
    from tf_smoothclir.training.grades import with_grades_of_set
    from tf_smoothclir.training.train import train

    settings = preset_settings(FLAGS.preset if FLAGS["preset"].present else "", given)
    if "thresholds" not in given:
        settings = with_grades_of_set(settings, FLAGS.run_dir, overwrite=FLAGS.overwrite)
    result = train(settings, FLAGS.run_dir, overwrite=FLAGS.overwrite)
    print_results(result, ["test"])
    for part in export_verified(FLAGS.run_dir, ""):
        print(part)
