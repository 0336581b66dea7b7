"""How to get a part of cephqos that is not installed here."""

import sys


def how_to_install(extra: str = "", module: str = "") -> str:
    """What to type. From a checkout: no package index has cephqos, and what is there under this
    name one day may be something else. Into a virtual environment: distributions refuse pip
    outside of one."""
    if module == "cephqos_loadgen" and __file__.startswith("/usr/lib/cephqos/"):
        return "install the package cephqos-top"
    target = f".[{extra}]" if extra else "."
    if sys.prefix != sys.base_prefix:
        return f"in a checkout of cephqos: {sys.prefix}/bin/pip install '{target}'"
    return (
        "in a checkout of cephqos: python3 -m venv ~/cephqos &&"
        f" ~/cephqos/bin/pip install '{target}'"
    )
