"""A tiny learnable set in the layout of WikiCLIR, and settings that train on it in seconds."""

from pathlib import Path

from tests.cases import word
from tf_smoothclir.settings import presets, run

QUERIES, DOCUMENTS, WORDS = 20, 30, 9
SPLITS = ("train", "train", "train", "validation", "test")


def words_of(number: int) -> list[int]:
    """The three words that document `number` is about; a query has two of them."""
    return [number % WORDS, (number // 2 + 3) % WORDS, (number * number + 1) % WORDS]


def write_tiny_set(directory: Path) -> Path:
    """Writes 20 English queries, 30 French documents (one of them empty) and their judgments."""
    directory.mkdir(parents=True)
    files = {
        "wiki_en.queries": [
            f"{n}\tTitle {n}\t" + " ".join(word("word", w) for w in words_of(n)[:2])
            for n in range(QUERIES)
        ],
        "wiki_fr.documents": [
            f"{n}\tTitre {n}\t" + " ".join(word("mot", w) for w in words_of(n))
            for n in range(DOCUMENTS)
        ],
        "en2fr.rel": [
            f"{n}\t{document}\t{grade}"
            for n in range(QUERIES)
            for document, grade in ((n, 2), (n + 5, 1))
        ],
        "splits.tsv": [f"{n}\t{SPLITS[n % len(SPLITS)]}" for n in range(QUERIES)],
    }
    files["wiki_fr.documents"][-1] = f"{DOCUMENTS - 1}\tVide\t"
    for name, lines in files.items():
        (directory / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def tiny_settings(data_dir: Path, cache_dir: Path, **changes) -> run.RunSettings:
    """Settings for a tiny set: 12 training queries, 60 pairs, 8 steps of 8 pairs an epoch."""
    values = {
        "data_dir": str(data_dir),
        "cache_dir": str(cache_dir),
        "dim": 4,
        "negatives": 3,
        "batch_size": 8,
        "epochs": 2,
        "learning_rate": 0.1,
        "checkpoint_minutes": 1000.0,  # a state is saved after each epoch alone
        **changes,
    }
    return presets.changed(run.RunSettings(), values)
