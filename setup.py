"""Installs tf_smoothclir. What each dependency is for stands in BUILD.md."""

import sys
from pathlib import Path

from setuptools import find_packages, setup

if not (3, 9) <= sys.version_info[:2] <= (3, 11):
    sys.exit(
        "tf_smoothclir needs Python 3.9, 3.10 or 3.11 (tensorflow-ranking 0.5.5, its last release,"
        " needs TensorFlow 2.15, which has no newer Python); this is Python {}.{}. Make an"
        " environment with one of them, such as: python3.11 -m venv .venv".format(
            *sys.version_info[:2]
        )
    )

# The trainers and the shipping tools are top-level folders of the checkout; installed, they live
# below tf_smoothclir, so that no other name is put into site-packages.
PACKAGE_DIR = {
    "tf_smoothclir": "tf_smoothclir",
    "tf_smoothclir.trainers": "trainers",
    "tf_smoothclir.export": "export",
}
COMMANDS = {
    "quickstart": "trainers.quickstart",
    "train": "trainers.train",
    "evaluate": "trainers.evaluate",
    "compare": "trainers.compare",
    "tune": "trainers.tune",
    "reproduce": "trainers.reproduce",
    "stats": "trainers.stats",
    "shards": "trainers.write_shards",
    "convert-polyglot": "trainers.convert_polyglot",
    "vectors": "trainers.train_vectors",
    "export": "export.export",
    "index": "export.build_index",
    "search": "export.search",
    "serve": "export.serve",
    "client": "export.client",
}

setup(
    name="tf_smoothclir",
    version="0.1.0",
    description="Cross-lingual document retrieval with smooth learning, in TensorFlow",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.9,<3.12",
    packages=[*find_packages(include=["tf_smoothclir", "tf_smoothclir.*"]), *list(PACKAGE_DIR)[1:]],
    package_dir=PACKAGE_DIR,
    package_data={
        "tf_smoothclir.export": ["serving/*"],
        "tf_smoothclir.serving.server": ["page.html"],
    },
    install_requires=[
        "absl-py>=1.4,<3",
        # Their newer releases need a newer Python, which not every package index says.
        "array_record<0.6; python_version < '3.10'",
        "etils<1.6; python_version < '3.10'",
        "etils<1.14; python_version < '3.11'",
        "faiss-cpu>=1.8,<2",
        "grpcio>=1.24",
        "importlib_resources>=5",
        "keras-tuner>=1.4.7,<1.5",
        "matplotlib>=3.7,<4",
        "numpy>=1.23.5,<2",
        "tensorboard>=2.15,<2.16",
        "tensorflow>=2.15.1,<2.16",
        "tensorflow-datasets>=4.9.3,<4.9.11",
        "tensorflow-datasets<4.9.4; python_version < '3.10'",
        "tensorflow-metadata>=1.14,<1.18",
        "tensorflow-ranking>=0.5.5,<0.6",
        "tensorflow-serving-api>=2.15,<2.16",
        "tqdm>=4.62,<5",
    ],
    extras_require={
        "beam": ["apache-beam>=2.64,<2.65"],
        "parquet": ["pyarrow>=15,<22"],
        "vectors": ["gensim>=4.3,<5"],
        "test": [
            "dill>=0.3.6",
            "gensim>=4.3,<5",
            "hypothesis>=6.80",
            "ir-measures>=0.3.3",
            "pyarrow>=15,<22",
            "pytest>=7.4,<9",
            "pytest-xdist>=3.3",
            "pyyaml>=6",
            "ruff>=0.14,<1",
            "scipy>=1.9",
        ],
    },
    entry_points={
        "console_scripts": [
            f"smoothclir-{name}=tf_smoothclir.{module}:run" for name, module in COMMANDS.items()
        ]
    },
)
