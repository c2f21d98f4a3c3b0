"""The work of smoothclir-teach, by its flags."""

from __future__ import annotations

from pathlib import Path

from tf_smoothclir.command_line.setting_flags import FLAGS, group_from_flags, settings_from_flags
from tf_smoothclir.data.sources.memory import write_set
from tf_smoothclir.data.sources.opening import query_log_of
from tf_smoothclir.settings.encoder import EncoderSettings
from tf_smoothclir.settings.presets import preset_settings
from tf_smoothclir.utils.errors import input_error


def teach_by_flags() -> None:
    """Writes a set with the judgments of an encoder, and says how many there are."""
    path = Path(FLAGS.output_dir)
    if path.exists() and not FLAGS.overwrite:
        remedy = "Give another --output_dir, or --overwrite"
        raise input_error(f"--output_dir={path}", "it is there already", remedy)
    if not FLAGS.encoder:
        remedy = "Give one, such as http://localhost:8000/v1; --help lists the kinds"
        raise input_error("--encoder", "there is no teacher", remedy)
    settings = settings_from_flags(preset_settings("lexical"))
    source = query_log_of(settings.data)
    # These imports take seconds: report a missing set first.
    from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
    from tf_smoothclir.foreign_encoders.teaching import taught

    encoder = encoder_of(group_from_flags(EncoderSettings))
    found = taught(source, EncodedSet.of(encoder, source, settings.data.cache_dir), settings)
    write_set(found, path, found.splits(), replace=FLAGS.overwrite)
    print(
        f"{path}: {encoder.name} judged {found.labelled:,} queries. Train with"
        f" smoothclir-train --data_dir={path}"
    )
