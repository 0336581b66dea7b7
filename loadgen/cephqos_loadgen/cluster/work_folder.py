"""The folder of a run's temporary files: made with our mark, and removed only with it."""

import contextlib
from dataclasses import asdict
from pathlib import Path

from cephqos_base import marked
from cephqos_loadgen.cluster import this_host
from cephqos_loadgen.cluster.this_host import ThisProcess

_KIND = "work"


def make(folder: Path) -> None:
    """Make the folder of a run, beside which those of dead runs are removed."""
    remove_dead(folder.parent)
    try:
        marked.make(folder, _KIND, host=this_host.name(), process=asdict(ThisProcess.now()))
    except FileExistsError:
        marked.read(folder, _KIND)


def remove(folder: Path) -> None:
    """Remove it, if it is ours."""
    with contextlib.suppress(marked.NotOurs, OSError):
        marked.remove(folder, _KIND)


def remove_dead(parent: Path) -> list[Path]:
    """Remove the folders of runs of this host that have ended. Returns them."""
    removed = []
    for folder in sorted(path.parent for path in parent.glob(f"*/{marked.MARK}")):
        with contextlib.suppress(marked.NotOurs, OSError, KeyError, TypeError, ValueError):
            says = marked.read(folder, _KIND)
            process = ThisProcess(**says["process"])
            of_another_boot = process.boot != this_host.boot()
            if says["host"] == this_host.name() and (of_another_boot or process.is_gone()):
                marked.remove(folder, _KIND)
                removed.append(folder)
    return removed
