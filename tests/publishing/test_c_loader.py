"""The exported models in a C program, with the loader of TensorFlow Serving and no Python."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_smoothclir.publishing.export_directory import part_dir

pytestmark = pytest.mark.slow

QUERIES = [b"word1 word2", b"", b"\xff\xfe", b"a\0word3", b"WORD4 " * 300, "日本 word5".encode()]
DOCUMENTS = [b"mot1 mot2", b"mot3", b"", b"\0", b"mot4 " * 300, b"unheard"]
# Retriever of the export, role.
REQUESTS = [("dense", "query"), ("dense", "document")]
REQUESTS += [(name, "search") for name in ("dense", "lexical", "hybrid")]


@pytest.fixture(scope="module")
def c_loader(tmp_path_factory):
    """The compiled program."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) on the PATH: the C loader is not tested")
    program = tmp_path_factory.mktemp("c") / "c_loader"
    wheel = tf.sysconfig.get_lib()
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    if not Path(wheel, "libtensorflow_cc.so.2").is_file():
        pytest.skip(f"this TensorFlow has no C library in {wheel}: the C loader is not tested")
    source = str(Path(__file__).with_name("c_loader.c"))
    command = [compiler, "-std=c11", "-Wall", "-Wextra", f"-I{tf.sysconfig.get_include()}", source]
    command += ["-o", str(program), f"-L{wheel}", f"-Wl,-rpath,{wheel}", *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "c_loader.c" not in done.stderr  # no warnings
    return program


def run(c_loader, model_dir, rows_file, rows):
    """Runs a model in the C program; returns the finished process and the output names."""
    saved = saved_model_pb2.SavedModel.FromString((model_dir / "saved_model.pb").read_bytes())
    definition = saved.meta_graphs[0].signature_def["serving_default"]
    with open(rows_file, "wb") as file:
        file.write(struct.pack("=I", len(rows)))
        file.writelines(struct.pack("=I", len(row)) + row for row in rows)
    outputs = sorted(definition.outputs)
    tensors = [definition.inputs["text"].name]
    tensors += [definition.outputs[name].name for name in outputs]
    command = [c_loader, model_dir, rows_file, "1", *tensors]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(command, env=quiet, capture_output=True, text=True), outputs


def parsed(line):
    """The array that the program has printed as a line."""
    kind, rank, *rest = line.split()
    shape, values = [int(size) for size in rest[: int(rank)]], rest[int(rank) :]
    if kind == "string":
        values = [b"" if value == "-" else bytes.fromhex(value) for value in values]
        return np.array(values, object).reshape(shape)
    return np.array(values, kind if kind == "int32" else np.float32).reshape(shape)


@pytest.mark.parametrize(("name", "role"), REQUESTS)
def test_c_program_gives_what_python_gives(c_loader, ranking_exports, tmp_path, name, role):
    texts = DOCUMENTS if role == "document" else QUERIES
    directory = part_dir(ranking_exports[name], role) / "1"
    done, names = run(c_loader, directory, tmp_path / "rows", texts)
    assert done.returncode == 0, done.stderr
    found = dict(zip(names, map(parsed, done.stdout.splitlines())))
    model = tf.saved_model.load(str(directory))
    expected = model.signatures["serving_default"](text=tf.constant(texts))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        if value.dtype.is_floating:
            assert np.abs(value).max() > 0.01
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(found[name], value.numpy())
