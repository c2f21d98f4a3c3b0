"""Installs tf_smoothclir. BUILD.md says what each dependency is for."""

import re
import sys
from pathlib import Path

from setuptools import find_packages, setup

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        "tf_smoothclir needs Python 3.11 to 3.13 (3.12 and 3.13 get TensorFlow 2.21, 3.11"
        " TensorFlow 2.15 with tensorflow-ranking); this is Python {}.{}. Create an environment"
        " with one of them, such as: python3.13 -m venv .venv".format(*sys.version_info[:2])
    )

# These are top-level folders of the checkout. Installed, they are subpackages of tf_smoothclir, so
# that site-packages gets no other top-level name.
PACKAGE_DIR = {
    "tf_smoothclir": "tf_smoothclir",
    "tf_smoothclir.trainers": "trainers",
    "tf_smoothclir.export": "export",
    "tf_smoothclir.papers": "papers",
    "tf_smoothclir.extras": "extras",
}
COMMANDS = {
    "quickstart": "trainers.quickstart",
    "train": "trainers.train",
    "evaluate": "trainers.evaluate",
    "teach": "trainers.teach",
    "compare": "trainers.compare",
    "tune": "trainers.tune",
    "reproduce": "papers.reproduce",
    "stats": "trainers.stats",
    "shards": "extras.distributed.write_shards",
    "convert-polyglot": "papers.liu2020.convert_polyglot",
    "export": "export.export",
    "index": "export.build_index",
    "search": "export.search",
    "serve": "export.serve",
    "lucene": "extras.lucene.write_files",
}

IR_DATASETS = "ir_datasets>=0.5.6,<0.7"  # from 0.5.6 on, records have a default text
DUCKDB = "duckdb>=2,<3"  # others name the parts of a parsed expression otherwise
PYARROW = "pyarrow>=15,<22 | pyarrow>=18,<27"  # from 22 on it needs NumPy 2


def on_both(*requirements: str) -> list[str]:
    """Returns requirements; "old | new" becomes one for Python 3.11 and one from 3.12 on.

    tensorflow-ranking 0.5.5, its last release, needs TensorFlow 2.15, which needs Python 3.11 or
    older. An empty side means that this stack does not need the package.
    """
    result = []
    for requirement in requirements:
        older, bar, newer = requirement.partition("|")
        if not bar:
            result.append(requirement)
            continue
        sides = {"python_version < '3.12'": older, "python_version >= '3.12'": newer}
        result += [f"{side.strip()}; {marker}" for marker, side in sides.items() if side.strip()]
    return result


def long_description() -> str:
    """Returns the README without what works in a checkout alone: pictures, relative links."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n?", "", text)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    name="tf_smoothclir",
    version="0.1.0",
    description="Cross-lingual document retrieval with TensorFlow: train, evaluate, export, search",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="The authors of tf_smoothclir",
    license="Apache-2.0",
    license_files=["LICENSE"],
    project_urls={"Paper": "https://aclanthology.org/2020.coling-main.323"},
    keywords=[
        "cross-lingual information retrieval",
        "document retrieval",
        "Keras",
        "learning to rank",
        "search",
        "TensorFlow",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 14)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Indexing",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.14",
    packages=[
        *find_packages(include=["tf_smoothclir", "tf_smoothclir.*"]),
        *(
            f"tf_smoothclir.{package}"
            for folder in PACKAGE_DIR.values()
            if folder != "tf_smoothclir"
            for package in find_packages(include=[folder, f"{folder}.*"])
        ),
    ],
    package_dir=PACKAGE_DIR,
    package_data={
        "tf_smoothclir": ["py.typed"],
        "tf_smoothclir.data.sources.toy_languages": ["*.toml"],
        "tf_smoothclir.encoder": ["*.toml"],
        "tf_smoothclir.export": ["serving/*"],
        "tf_smoothclir.server": ["page.html"],
    },
    install_requires=[
        *on_both(
            "absl-py>=1.4,<3",
            "faiss-cpu>=1.9,<2",
            "grpcio>=1.24",
            "importlib_resources>=5",
            "ir-measures>=0.3.3",
            "keras-tuner>=1.4.7,<1.5",
            "matplotlib>=3.7,<4",
            "numpy>=1.25,<2 | numpy>=2,<3",
            PYARROW,  # tensorflow-datasets needs it too, of any version
            "rich>=13.7,<16",
            "scikit-learn>=1.3,<2",
            "scipy>=1.11,<2",
            "starlette>=1.10,<2",
            "tensorboard>=2.15,<2.16 | tensorboard>=2.20,<3",
            "tensorflow>=2.15.1,<2.16 | tensorflow>=2.21,<2.22",
            "tensorflow-datasets>=4.9.3,<4.9.11 | tensorflow-datasets>=4.9.10,<5",
            "tensorflow-metadata>=1.14,<1.18 | tensorflow-metadata>=1.21,<2",
            "tensorflow-ranking>=0.5.5,<0.6 | keras-rs>=0.4,<0.5",
            "| keras>=3.15,<4",
            "tensorflow-serving-api>=2.15,<2.16 | tensorflow-serving-api>=2.21,<2.22",
            "uvicorn>=0.54,<1",
        ),
    ],
    extras_require={
        "docs": on_both(
            "mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=0.26,<2"
        ),
        "ir_datasets": on_both(IR_DATASETS),
        "langchain": on_both("langchain-core>=0.3,<2"),
        "milvus": on_both("| milvus-lite>=3.2,<4", "| pymilvus>=3,<4"),  # protobuf 5 and later
        "filters": on_both(DUCKDB),
        "test": on_both(
            "dill>=0.3.6",
            DUCKDB,
            "gensim>=4.3,<5",
            "hypothesis>=6.80",
            IR_DATASETS,
            "mypy>=1.11,<3",
            "nltk>=3.8",
            "pandas>=2,<4",
            "pytest>=7.4,<9",
            "pytest-xdist>=3.8",
            "pyyaml>=6",
            "ruff>=0.14,<1",
        ),
    },
    entry_points={
        "console_scripts": [
            f"smoothclir-{name}=tf_smoothclir.{module}:run" for name, module in COMMANDS.items()
        ]
    },
)
