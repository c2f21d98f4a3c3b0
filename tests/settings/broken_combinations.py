"""An example for each rule of what goes together with what."""

import dataclasses
import shlex

from tf_smoothclir.command_line.command import FLAG_RULES
from tf_smoothclir.extras import distributed
from tf_smoothclir.papers import li2018  # these rules are examples of a plug-in's
from tf_smoothclir.papers.li2018.settings import OBJECTIVE_RULES
from tf_smoothclir.settings import base, presets, run

OF_PLUGINS = dict.fromkeys(OBJECTIVE_RULES, li2018.__name__)
OF_PLUGINS |= dict.fromkeys(distributed.RULES, distributed.__name__)
RULES = presets.rules()
_DEFAULTS = {**run.RunSettings().values(), "tune": ("",), "num_shards": 0}

# What a rule reads, in its order, with values that break it first; a name alone has its default.
# After the bar, what keeps other rules quiet. EACH: the first with each of the others.
_SETTINGS = """
data_dir=here tfds_name=wiki_clir/fr
ir_dataset=mr-tydi/sw data_dir=here tfds_name
parallel=here data_dir
min_ngram=4 max_ngram=3
text_fields=title,body passage_words
token_weights=idf tower=cnn
position_weights=learned tower=cnn
matryoshka_dims=8 tower=lstm
loss=softmax batching=bucketed
loss=given objects
tower=given objects
tower=given EACH ngram_buckets=50 initial_vectors=bilingual query_embeddings=v.vec | objects={}
tower=given document_embeddings=fr.vec | objects={}
initial_vectors=bilingual query_embeddings document_embeddings=fr.vec
shared_vocabulary=True query_embeddings=en.vec document_embeddings=fr.vec
shared_vocabulary=True query_vocabulary=en.txt document_vocabulary=fr.txt
shared_vocabulary=True train_query_embeddings=False train_document_embeddings
tower token_weights position_weights train_query_embeddings=False train_document_embeddings=False
distribution=multi_worker shards_dir | batching=lists
shards_dir=gs://shards distribution
objective=adversarial distribution=shards | shards_dir=gs://shards batching=lists
objective=adversarial EACH batching=lists pseudo_queries=9 matryoshka_dims=8 shared_vocabulary=True
objective=s2net loss=mse
objective=s2net hard_negatives=3
objective=xcnn opening_epochs
objective=xcnn optimizer=adam | opening_epochs=2
objective=bae tower
objective=bae ngram_buckets=100 | tower=linear
objective=adversarial adversarial_weight discriminator_steps=0
objective=adversarial opening_epochs=5 epochs=5
distribution=shards retriever=lexical | shards_dir=gs://s batching=lists
distribution=shards reranker=late_interaction | shards_dir=gs://s batching=lists
rerank_depth=50 reranker
dictionary=en-fr.txt retriever
distribution=shards batching=in_batch | shards_dir=gs://shards
distribution=shards EACH fresh_negatives=True hard_negatives=2 | shards_dir=gs://s batching=lists
distribution=shards EACH pseudo_queries=9 ngram_buckets=50 | shards_dir=gs://s batching=lists
num_shards=2 ngram_buckets=50
retriever=reranked
retriever=encoder encoder
encoder=vectors.npz retriever
distill=True encoder
init_from=there distribution=shards | shards_dir=gs://shards batching=lists
init_from=there EACH query_vocabulary=w.txt document_vocabulary=w.txt initial_vectors=bilingual
init_from=there EACH query_embeddings=v.txt document_embeddings=v.txt
init_from=there dictionary=words.txt | retriever=hybrid
tune=dim distribution=shards | shards_dir=gs://shards batching=lists
tune=dim retriever=lexical
tune=gamma1 objective
tune=thresholds loss=three_part_l2
tune=dim objects={}
"""
# Flags that need another one, which is not given.
_ALONE = """
filter='year > 1' ui
retriever=dense ui
engine=milvus uri
uri=here.db engine
engine_collection=mine engine
add=documents.tsv engine
remove=ids.txt engine
"""
# Other values than the defaults of flags that exclude each other.
_GIVEN = """
queries=queries.tsv query='a river' trec_run=a.run json=True explain=True add=documents.tsv
remove=ids.txt engine=milvus index_dir=index collection=documents.tsv index_type=hnsw
overwrite=True update=True search_model=False data_dir=here tfds_name=wiki_clir/fr
tfds_data_dir=here ir_dataset=mr-tydi/sw query_language=de document_language=sw max_queries=25
max_train_queries=12 max_skipped=0.1 toy_entities=900 split_seed=5 parallel=a.en,a.fr
"""


@dataclasses.dataclass(frozen=True)
class Example:
    """What breaks one rule first, as text; everything else has its default."""

    rule: base.Rule
    texts: dict[str, str]

    def __str__(self) -> str:
        return "-".join(self.rule.names)

    @property
    def values(self) -> dict[str, object]:
        return {name: _value(_DEFAULTS[name], text) for name, text in self.texts.items()}


def _value(default, text: str):
    if isinstance(default, bool):
        return text == "True"
    if isinstance(default, tuple):
        return tuple(type((*default, 0)[0])(part) for part in text.split(","))
    return type(default)(text)


def _texts(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(line) if "=" in word)


def _examples(table: str) -> dict[tuple[str, ...], dict[str, str]]:
    """What the rules read -> the texts that break them."""
    found = {}
    for line in table.strip().splitlines():
        read, _, context = line.partition("|")
        first, each, others = read.partition(" EACH ")
        for words in [f"{first} {other}" for other in others.split()] if each else [read]:
            names = tuple(word.partition("=")[0] for word in shlex.split(words))
            found[names] = {**_texts(words), **_texts(context)}
    return found


_OF_RULES, _OF_ALONE, _OTHERS = _examples(_SETTINGS), _examples(_ALONE), _texts(_GIVEN)
OF_SETTINGS = tuple(Example(rule, _OF_RULES[rule.names]) for rule in RULES)
OF_FLAGS = tuple(
    Example(rule, _OF_ALONE.get(rule.names) or {name: _OTHERS[name] for name in rule.names})
    for rule in FLAG_RULES
)
