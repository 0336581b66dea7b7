"""What the runbooks' queries show while the fault that they are for is staged."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.stack.conftest import Watched

from .judge import Heard

_TEXT: Final = Path("alerts/runbooks.md").read_text(encoding="utf-8")
_BLOCK: Final = re.compile(r"^ *```promql\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_REPLICA_WRITE: Final = "osd_repop"


def queries(alert: str, cause: str) -> list[str]:
    """Those to look at first, and those of the cause."""
    section = _TEXT.split(f"\n## {alert}\n")[1].split("\n## ")[0]
    general, _, causes = section.partition("**By cause.**")
    bullets = re.split(r"^- \*\*(\w+)\*\*:", causes.split("\n**False alarm")[0], flags=re.MULTILINE)
    of_cause = dict(zip(bullets[1::2], bullets[2::2], strict=True)).get(cause, "")
    blocks = _BLOCK.findall(general) + _BLOCK.findall(of_cause)
    return [line.strip() for block in blocks for line in block.splitlines()]


async def shown(on: Watched, heard: Sequence[Heard]) -> dict[str, str]:
    """By alert and query: how many series it shows for the OSD of the alert, and the largest."""
    found = {}
    for labels in (dict(it.labels) for it in heard):
        osd, name = labels.get("ceph_daemon"), labels["alertname"]
        if osd is None or f"## {name}\n" not in _TEXT:
            continue
        for query in queries(name, labels.get("cause", "")):
            series = await on.stack.query(query.replace("osd.N", osd))
            values = [float(it["value"][1]) for it in series]
            most = f", at most {max(values):.3g}" if values else ""
            found[f"{name.removeprefix('CephQos')} {osd}: {query}"] = f"{len(series)} series{most}"
        if name == "CephQosReplicaSlow":
            command = ["ceph", "tell", osd, "dump_ops_in_flight"]
            ops = json.loads((await on.lab.exec(command)).stdout)["ops"]
            held = sum(_REPLICA_WRITE in op["description"] for op in ops)
            found[f"ReplicaSlow {osd}: {' '.join(command)}"] = f"{held} {_REPLICA_WRITE}"
    return found
