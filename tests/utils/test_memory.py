"""Peak memory, and memory that is used again."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from tf_smoothclir.utils.memory import peak_memory

PROGRAM = """
import numpy as np
from tf_smoothclir.utils.memory import peak_memory
before = peak_memory()
np.ones(50 << 20, np.uint8)
print(before, peak_memory())
"""


def test_the_peak_is_that_of_the_program_alone_not_of_the_one_that_started_it():
    here = np.ones(600 << 20, np.uint8)  # which getrusage of the child would count
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    before, after = map(int, printed.stdout.split())
    assert after - before > 40 << 20
    assert after < here.nbytes < peak_memory()


FAULTS = """
import resource
import numpy as np
from tf_smoothclir.utils.memory import reuse_freed_memory
reuse_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        pages = np.ones(8 << 20, np.uint8), np.ones(8 << 20, np.uint8)
        del pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()  # which gets the pages of both arrays
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_arrays_of_megabytes_take_the_pages_of_those_before_them():
    printed = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, check=True)
    # Of 20 times two arrays of 2,048 pages; without it, nearly all of them.
    assert int(printed.stdout) < 1000
