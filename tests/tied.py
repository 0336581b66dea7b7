"""A child that ends with its parent, however that ends."""

import sys
from collections.abc import Sequence
from typing import Final

# Sees to it that the command ends with us (PR_SET_PDEATHSIG), then becomes it.
_TIED: Final = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def tied(argv: Sequence[str]) -> list[str]:
    """The command line of a process that ends when the thread that started it does."""
    return [sys.executable, "-I", "-c", _TIED, *argv]
