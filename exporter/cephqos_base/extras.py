"""How to get a part of cephqos that is not installed here."""

import sys


def how_to_install(extra: str = "", module: str = "") -> str:
    """The command to type. It installs from a checkout, as cephqos is in no package index: another
    project may take the name there. It uses a virtual environment, as distributions refuse pip
    outside of one. On hosts with our packages (/usr/lib/cephqos) it names the missing package."""
    if module == "cephqos_loadgen" and __file__.startswith("/usr/lib/cephqos/"):
        return "install the package cephqos-top"
    target = f".[{extra}]" if extra else "."
    if sys.prefix != sys.base_prefix:
        return f"in a checkout of cephqos: {sys.prefix}/bin/pip install '{target}'"
    return (
        "in a checkout of cephqos: python3 -m venv ~/cephqos &&"
        f" ~/cephqos/bin/pip install '{target}'"
    )
