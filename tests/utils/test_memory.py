"""Peak memory is that of the program itself, not of the one that started it."""

import subprocess
import sys

import numpy as np

from tf_smoothclir.utils.memory import peak_memory

PROGRAM = """
import numpy as np
from tf_smoothclir.utils.memory import peak_memory
before = peak_memory()
np.ones(50 << 20, np.uint8)
print(before, peak_memory())
"""


def test_it_is_the_peak_of_the_program_alone():
    here = np.ones(600 << 20, np.uint8)  # which getrusage of the child would count
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    before, after = map(int, printed.stdout.split())
    assert after - before > 40 << 20
    assert after < here.nbytes < peak_memory()
