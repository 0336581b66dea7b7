"""What a Prometheus of ours answers."""

import json
import urllib.parse
from typing import Any

from cephqos_loadgen.fetch import fetch


async def query(
    prometheus_url: str, expr: str, at_seconds: float | None = None, within: float = 5.0
) -> list[dict[str, Any]]:
    """An instant query, now or at that time; the result vector or matrix. OSError, ValueError."""
    parameters = {"query": expr} | ({} if at_seconds is None else {"time": f"{at_seconds:.3f}"})
    text = urllib.parse.urlencode(parameters)
    reply = json.loads(await fetch(f"{prometheus_url}/api/v1/query?{text}", within=within))
    result: list[dict[str, Any]] = reply["data"]["result"]
    return result
