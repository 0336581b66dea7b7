"""Asks other exporters to keep what they recorded, as this one was asked.

So an alert needs to reach only one of them.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_exporter.web.addresses import shown, split_address

# The header of a forwarded request. It is not forwarded again: two exporters may name each other.
FORWARDED: Final = "Cephqos-Forwarded"
_SECONDS: Final = 20.0  # for an exporter, which may wait for its disk
_AT_ONCE: Final = 50  # requests
_MOST: Final = 2000  # addresses


async def forward(
    path: str,
    addresses: Sequence[str],
    body: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
) -> list[str]:
    """Post to every address of these names. Returns the exporters that kept nothing, and why."""
    if FORWARDED in headers:
        return []
    places: list[Any] = []
    missed: list[str] = []
    for address in addresses:
        try:
            places += await _places(address)
        except OSError as exc:
            missed.append(f"{address} ({exc.strerror or exc})")
    places = list(dict.fromkeys(places))
    if len(places) > _MOST:
        missed.append(f"{len(places) - _MOST} more addresses (at most {_MOST} are asked)")
    sent_headers = {FORWARDED: "1", "Content-Type": "application/json"}
    if "Authorization" in headers:
        sent_headers["Authorization"] = headers["Authorization"]
    scheme = "https" if tls else "http"
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def post(place: str) -> None:
        address = Address(f"{scheme}://{place}")
        async with (
            at_once,
            HttpServer(address, within=_SECONDS, headers=sent_headers, tls=tls) as server,
        ):
            try:
                answer = await server.ask("POST", path, data=body)
            except NoAnswer as exc:
                missed.append(f"{place} ({exc})")
                return
        if answer.status != 200:
            missed.append(f"{place} (HTTP status {answer.status})")

    await asyncio.gather(*(post(place) for place in places[:_MOST]))
    return missed


async def _places(address: str) -> list[str]:
    """All addresses of a name, such as those of the pods of a service."""
    places = await asyncio.get_running_loop().getaddrinfo(
        *split_address(address), type=socket.SOCK_STREAM
    )
    return [shown(one[4]) for one in places]
