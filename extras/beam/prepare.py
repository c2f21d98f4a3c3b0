"""Tokenises a very large retrieval set into the cache, where training with the same flags finds it.

Training tokenises a set itself; this command does it beforehand, with Apache Beam on many machines,
which all need --data_dir and --cache_dir at the same paths.
"""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line import command, setting_flags

_BEAM = flags.DEFINE_string(
    "beam",
    "--runner=DirectRunner",
    "Pipeline options, such as --beam='--runner=FlinkRunner --flink_master=host:8081'. The default"
    " runner works on this machine, and is no faster than training's own.",
    module_name=command.COMMAND,
)
_THRESHOLDS = setting_flags.define_thresholds()
setting_flags.define_settings(["data", "text"])


def main(argv) -> None:
    """Tokenises the set, and prints where vocabularies and tokens are."""
    del argv
    settings = setting_flags.settings_from_flags()
    data, text = settings.data, settings.text
    setting_flags.check_data(data)
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.tokenized_set import ROLES
    from tf_smoothclir.extras.beam.preparation import BeamPreparation, check_text

    check_text(text)  # before the set is read
    retrieval_set = RetrievalSet.load(
        source_of(data), num_grades=len(_THRESHOLDS.value) + 1, seed=data.split_seed
    )
    tokenized_set = BeamPreparation(retrieval_set, text, _BEAM.value.split())(data.cache_dir)
    sizes = (f"{role} side {len(tokenized_set.vocabulary(role)):,} entries" for role in ROLES)
    print(f"Vocabularies: {tokenized_set.vocabulary_dir}: {', '.join(sizes)}")
    stores = ((role, tokenized_set.tokens(role)) for role in ROLES)
    sizes = (f"{role} side {len(s):,} texts of {len(s.values):,} tokens" for role, s in stores)
    print(f"Token store: {tokenized_set.directory}: {', '.join(sizes)}")


def run() -> None:
    """Entry point of `smoothclir-prepare`."""
    command.run_main(main, __doc__, ["data", "text"])


if __name__ == "__main__":
    run()
