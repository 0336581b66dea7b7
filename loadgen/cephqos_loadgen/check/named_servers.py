"""Exporters, Grafana and Loki that the command line names: each must be there, and be that."""

import json

from cephqos_base.errors import UsageError
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.live.notify import ANNOTATIONS, PUSH, TOKEN_VARIABLE, with_token
from cephqos_loadgen.record.metrics import PageReader, cluster_of
from cephqos_loadgen.servers import Address, HttpServer, SourceDown

_SECONDS = 5.0
_EXPORTER = "expected a cephqos-exporter, such as http://host:10130"
_GRAFANA = "expected a Grafana, such as http://host:3000"
_LOKI = "expected a Loki, such as http://host:3100"
# What servers that take logs say to a push without any. To a GET of that path, Loki says 404 or
# 405, as the order happens to be in which it has put its parts together.
_NOTHING: dict[str, list[str]] = {"streams": []}
_TAKEN = (200, 204, 400, 422, 429)


async def check(options: RunOptions, fsid: str | None) -> None:
    """UsageError for the first one that the run could do nothing with; `fsid` is of the cluster, if
    that is known yet."""
    for address in options.exporters:
        await _exporter(address, fsid)
    if options.grafana:
        await _grafana(options.grafana)
    if options.loki:
        await _loki(options.loki)


async def _look(
    named: str, address: Address, expected: str, push: dict[str, list[str]] | None = None
) -> tuple[int, bytes]:
    async with HttpServer(address, within=_SECONDS) as server:
        try:
            return await (server.look("") if push is None else server.offer("", push))
        except SourceDown as error:
            raise UsageError(f"{named}: {error}; {expected}, that runs") from None


async def _exporter(address: Address, fsid: str | None) -> None:
    """One that is down now would be missing in every second of the archive."""
    named = f"--exporter {address.url}"
    status, body = await _look(named, address, _EXPORTER)
    if status != 200:
        raise UsageError(f"{named}: HTTP status {status}; {_EXPORTER}{_login(status)}")
    try:
        series = PageReader(lambda *_: None).read(body.decode(errors="replace"))
    except ValueError:
        raise UsageError(f"{named}: what is there is no page of metrics; {_EXPORTER}") from None
    if not any(name.startswith("cephqos_") for name in series):
        raise UsageError(f"{named}: the metrics there are not of cephqos; {_EXPORTER}")
    clusters = set(map(cluster_of, series)) - {""}
    if fsid and clusters and fsid not in clusters:
        raise UsageError(
            f"{named}: it shows the cluster {min(clusters)}; expected an exporter of {fsid}, which"
            " this run loads"
        )


async def _grafana(address: Address) -> None:
    whole = with_token(address).below(f"{ANNOTATIONS}?limit=1")
    named = f"--grafana {address.url}"
    status, body = await _look(named, whole, _GRAFANA)
    if status in (401, 403):
        raise UsageError(
            f"{named}: it refuses annotations (HTTP status {status}): put the token of a service"
            f" account with the role Editor into {TOKEN_VARIABLE}"
        )
    if status != 200 or not _is_list(body):
        raise UsageError(f"{named}: no annotations are there (HTTP status {status}); {_GRAFANA}")


async def _loki(address: Address) -> None:
    named = f"--loki {address.url}"
    status, _ = await _look(named, address.below(PUSH), _LOKI, _NOTHING)
    if status not in _TAKEN:
        raise UsageError(
            f"{named}: {PUSH} takes no logs (HTTP status {status}); {_LOKI}{_login(status)}"
        )


def _login(status: int) -> str:
    return ": user and password go into the URL" if status in (401, 403) else ""


def _is_list(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), list)
    except ValueError:
        return False
