"""Starts the command that is the first argument, with the libraries of the package."""

import sys

_HERE = "/usr/lib/cephqos"
sys.path[:0] = [f"{_HERE}/lib", f"{_HERE}/python{sys.version_info[0]}.{sys.version_info[1]}"]
sys.path.append(f"{_HERE}/top")  # of the package cephqos-top
from cephqos_base import entry  # noqa: E402

del sys.argv[0]
sys.exit(entry.exporter() if sys.argv[0] == "cephqos-exporter" else entry.cephqos())
