"""Reads what a scenario says of a sweep over depths, and of a search for a latency target."""

from collections.abc import Mapping

from cephqos_base.yamlfile import Value
from cephqos_loadgen.load.curves import Search, Sweep
from cephqos_loadgen.plan.reading import read_client_seconds, read_integer
from cephqos_loadgen.results.figures import PERCENTILES


def read_sweep(value: Value) -> Sweep:
    table = value.table(("depths", "dwell", "stop"), ("depths", "dwell"))
    stop = table["stop"].table(("dispersion", "latency")) if "stop" in table else {}
    return Sweep(
        depths=_read_depths(table["depths"]),
        dwell=read_client_seconds(table["dwell"]),
        dispersion=stop["dispersion"].number(0.01, 100) if _is_on(stop, "dispersion") else None,
        latency=stop["latency"].seconds(above_zero=True) if _is_on(stop, "latency") else None,
    )


def _is_on(stop: Mapping[str, Value], rule: str) -> bool:
    """A rule that is there, and not `off`."""
    return rule in stop and stop[rule].text() != "off"


def _read_depths(value: Value) -> tuple[int, ...]:
    depths = tuple(item.integer(1, 4096) for item in value.items())
    if not depths or len(set(depths)) < len(depths):
        value.fail("depths that are different, at least one")
    return depths


def read_search(value: Value) -> Search:
    table = value.table(
        ("target", "percentile", "least", "most", "dwell"), ("target", "most", "dwell")
    )
    least, most = read_integer(table, "least", 1, 4096), table["most"].integer(1, 4096)
    if least > most:
        table["most"].fail(f"at least {least}, the value of `least`")
    percentile = table["percentile"].choice(PERCENTILES) if "percentile" in table else None
    return Search(
        target=table["target"].seconds(above_zero=True),
        percentile=float(percentile) if percentile else None,
        least=least,
        most=most,
        dwell=read_client_seconds(table["dwell"]),
    )
