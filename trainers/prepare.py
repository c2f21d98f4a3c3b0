"""Tokenises a retrieval set into the cache, where training with the same flags finds it.

Training does this itself. Use this command to tokenise a very large collection beforehand, on many
machines with --beam. It prints where the vocabularies and the token store are.
"""

from __future__ import annotations

from absl import flags

from tf_smoothclir.command_line import command, setting_flags
from tf_smoothclir.settings.combinations import check_combinations

_OWN = {"module_name": command.COMMAND}
_BEAM = flags.DEFINE_string(
    "beam",
    "",
    "Count and tokenise the documents with Apache Beam and these pipeline options, such as"
    " --beam='--runner=FlinkRunner --flink_master=host:8081'. All Beam workers need --data_dir and"
    " --cache_dir at the same paths.",
    **_OWN,
)
_THRESHOLDS = setting_flags.define_thresholds()
setting_flags.define_settings(["data", "text"])


def main(argv) -> None:
    """Tokenises the set."""
    del argv
    data, text = (setting_flags.settings_from_flags(group) for group in ("data", "text"))
    if _BEAM.value:
        check_combinations(text, beam=_BEAM.value)
    setting_flags.check_data_dir(data.data_dir)
    from tf_smoothclir.data.preparation import tokenize_set
    from tf_smoothclir.data.retrieval_set import RetrievalSet
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.data.tokenized_set import ROLES

    retrieval_set = RetrievalSet.load(
        source_of(data), num_grades=len(_THRESHOLDS.value) + 1, seed=data.split_seed
    )
    if _BEAM.value:
        from tf_smoothclir.data.beam_preparation import BeamPreparation

        tokenized_set = BeamPreparation(retrieval_set, text, _BEAM.value.split())(data.cache_dir)
    else:
        tokenized_set = tokenize_set(retrieval_set, text, data.cache_dir)
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
