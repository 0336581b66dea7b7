"""Checks of the exporters, the Grafana and the Loki that the command line of a run names."""

import json

from cephqos_base.errors import UsageError
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.live.notify import ANNOTATIONS, PUSH, TOKEN_VARIABLE, with_token
from cephqos_loadgen.run_recording.metrics import PageReader, cluster_of

_SECONDS = 5.0
_EXPORTER = "expected a cephqos-exporter, such as http://host:10130"
_GRAFANA = "expected a Grafana, such as http://host:3000"
_LOKI = "expected a Loki, such as http://host:3100"
# A push without logs, and the statuses with which servers that take logs answer it. A GET of that
# path tells less: Loki answers 404 or 405.
_EMPTY_PUSH: dict[str, list[str]] = {"streams": []}
_TAKES_LOGS = (200, 204, 400, 422, 429)


async def check(options: RunOptions, fsid: str | None) -> None:
    """UsageError for the first server that the run cannot use. `fsid`: of the cluster, if known."""
    for address in options.exporters:
        await _exporter(address, fsid)
    if options.grafana:
        await _grafana(options.grafana)
    if options.loki:
        await _loki(options.loki)


async def _ask(
    named: str, address: Address, expected: str, push: dict[str, list[str]] | None = None
) -> tuple[int, bytes]:
    """The status and the body of a GET, or of a POST of `push`."""
    async with HttpServer(address, within=_SECONDS) as server:
        try:
            if push is None:
                return await server.ask("GET")
            return await server.ask("POST", json=push)
        except NoAnswer as error:
            raise UsageError(f"{named}: {error}; {expected}, that runs") from None


async def _exporter(address: Address, fsid: str | None) -> None:
    """An exporter that is down would be missing in every second of the archive."""
    named = f"--exporter {address.url}"
    status, body = await _ask(named, address, _EXPORTER)
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
    annotations = with_token(address).below(f"{ANNOTATIONS}?limit=1")
    named = f"--grafana {address.url}"
    status, body = await _ask(named, annotations, _GRAFANA)
    if status in (401, 403):
        raise UsageError(
            f"{named}: it refuses annotations (HTTP status {status}): put the token of a service"
            f" account with the role Editor into {TOKEN_VARIABLE}"
        )
    if status != 200 or not _is_list(body):
        raise UsageError(f"{named}: no annotations are there (HTTP status {status}); {_GRAFANA}")


async def _loki(address: Address) -> None:
    named = f"--loki {address.url}"
    status, _ = await _ask(named, address.below(PUSH), _LOKI, _EMPTY_PUSH)
    if status not in _TAKES_LOGS:
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
