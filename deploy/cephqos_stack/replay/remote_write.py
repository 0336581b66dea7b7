"""Remote write (version 1): a run's series sent to a Prometheus, Mimir, Thanos or VictoriaMetrics.

The message is protobuf in snappy's block format. Both are written here: eight fields, and snappy
allows what it holds to be stored as it is. A library for either would be larger than this file.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Final

from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_loadgen.archive.run_samples import Samples
from cephqos_loadgen.run_recording.columns import labelled, parse
from cephqos_stack.replay.gather import Gathered
from cephqos_stack.replay.programs import ReplayFailed

# All series of a minute are sent before the next minute: a database takes little that is older than
# what it has.
_SLICE_MS: Final = 60_000
_MOST_BYTES: Final = 1 << 20  # of a request
# After so long without a sample a series has ended: it gets a staleness marker, a special NaN.
_STALE_AFTER_MS: Final = 5_000
_STALE: Final = struct.pack("<Q", 0x7FF0000000000002)
_HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": "cephqos-replay",
}
_SECONDS: Final = 60.0  # for a request
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.25  # before the second attempt, doubled; then twice as long each time
# Statuses of a database that may take the same request later.
_TRY_AGAIN: Final = frozenset({429, 500, 502, 503, 504})


def varint(number: int) -> bytes:
    """An integer as protobuf writes it: seven bits per byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that has a length: text, or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def labels_of(series: str, run_labels: Mapping[str, str]) -> bytes:
    """The labels of a series, its name among them, in the order that the format wants."""
    name, labels = parse(series)
    all_labels = labelled(labels, run_labels) | {"__name__": name}
    return b"".join(
        _field(1, _field(1, key.encode()) + _field(2, all_labels[key].encode()))
        for key in sorted(all_labels)
    )


def snappy(content: bytes) -> bytes:
    """Snappy's block format without compression: the length, then literals of 64 KiB at most."""
    parts = [varint(len(content))]
    for start in range(0, len(content), 1 << 16):
        piece = content[start : start + (1 << 16)]
        parts += [b"\xf4", struct.pack("<H", len(piece) - 1), piece]
    return b"".join(parts)


def values_of(samples: Samples) -> Iterator[tuple[int, bytes]]:
    """Times and encoded values, in order, with a marker at the end and before each pause."""
    last: int | None = None
    for time in sorted(samples):
        if last is not None and time - last > _STALE_AFTER_MS:
            yield last + 1000, _STALE
        yield time, struct.pack("<d", samples[time])
        last = time
    if last is not None:
        yield last + 1000, _STALE


def messages(gathered: Gathered) -> Iterator[tuple[bytes, int]]:
    """Bodies of requests, each with its number of samples: minute by minute, all series of it."""
    slices: dict[int, list[bytes]] = {}  # encoded series by minute
    counts: dict[int, int] = {}  # samples by minute
    for series, samples in gathered.recording.series.items():
        labels = labels_of(series, gathered.run_labels)
        parts: dict[int, list[bytes]] = {}  # samples by minute
        for time, value in values_of(samples):
            moved = time + gathered.shift_ms
            # Field 1 is the value, a double; field 2 the time.
            sample = _field(2, b"\x09" + value + b"\x10" + varint(moved))
            parts.setdefault(moved // _SLICE_MS, []).append(sample)
        for number, encoded in parts.items():
            slices.setdefault(number, []).append(_field(1, labels + b"".join(encoded)))
            counts[number] = counts.get(number, 0) + len(encoded)
    for number in sorted(slices):
        yield from _bodies(slices.pop(number), counts[number])


def _bodies(series: Iterable[bytes], count: int) -> Iterator[tuple[bytes, int]]:
    """A minute in requests of about a megabyte. The last one carries the count of samples."""
    held: list[bytes] = []
    size = 0
    for encoded in series:
        if held and size + len(encoded) > _MOST_BYTES:
            yield snappy(b"".join(held)), 0
            held, size = [], 0
        held.append(encoded)
        size += len(encoded)
    yield snappy(b"".join(held)), count


async def send(to: Address, gathered: Gathered, token: str = "") -> AsyncIterator[int]:
    """Send a run. Yields how many samples, staleness markers included, were sent so far."""
    sent = 0
    async with HttpServer(to.with_token(token), within=_SECONDS, headers=_HEADERS) as server:
        for body, count in messages(gathered):
            await _post(server, body)
            sent += count
            yield sent


async def _post(server: HttpServer, body: bytes) -> None:
    problem = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
        try:
            answer = await server.ask("POST", data=body)
        except NoAnswer as error:
            problem = str(error)
            continue
        if answer.status < 400:
            return
        problem = f"status {answer.status}: {answer.first_words}"
        if answer.status not in _TRY_AGAIN:
            break
    raise ReplayFailed(f"{server.shown} did not take the run: {problem}{_hint(problem)}")


def _hint(problem: str) -> str:
    """What most often helps."""
    if problem.startswith("status 404"):
        return " (a Prometheus needs --web.enable-remote-write-receiver, path /api/v1/write)"
    if "future" in problem:
        return " (--at now moves the runs so that they end now)"
    too_old = ("out of bounds", "out of order", "too old", "too far behind")
    if any(words in problem for words in too_old):
        return (
            " (it has newer samples: --at now, or a database with"
            " storage.tsdb.out_of_order_time_window)"
        )
    return ""
