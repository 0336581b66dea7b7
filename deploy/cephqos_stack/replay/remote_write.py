"""Remote write (version 1): a run's series sent to a Prometheus, Mimir, Thanos or VictoriaMetrics.

The message is protobuf in snappy's block format. Both are written here: eight fields, and snappy
allows what it holds to be stored as it is. A library for either would be larger than this file.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Final

import aiohttp

from cephqos_base.answers import in_one_line
from cephqos_loadgen.archive.series import Samples
from cephqos_loadgen.record.columns import labelled, parse
from cephqos_loadgen.servers import Address, first_words
from cephqos_stack.replay.gather import Gathered
from cephqos_stack.replay.programs import ReplayFailed

# Samples go in the order of time: a database takes little that is older than what it has.
_SLICE_MS: Final = 60_000
_MOST_BYTES: Final = 1 << 20
_STALE_AFTER_MS: Final = 5_000
_STALE: Final = struct.pack("<Q", 0x7FF0000000000002)
_HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": "cephqos-replay",
}
_SECONDS: Final = 60.0
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.25
# What a database answers when it is asked to take less at a time, or later.
_LATER: Final = frozenset({429, 500, 502, 503, 504})


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that has a length: text, or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def _label(name: str, value: str) -> bytes:
    return _field(1, _field(1, name.encode()) + _field(2, value.encode()))


def _sample(time_ms: int, value: bytes) -> bytes:
    return _field(2, b"\x09" + value + b"\x10" + varint(time_ms))


def labels_of(series: str, own: Mapping[str, str]) -> bytes:
    """The labels of a series, its name among them, in the order that the format wants."""
    name, labels = parse(series)
    all_labels = labelled(labels, own) | {"__name__": name}
    return b"".join(_label(key, all_labels[key]) for key in sorted(all_labels))


def snappy(content: bytes) -> bytes:
    """Snappy's block format without compression: the length, then literals."""
    parts = [varint(len(content))]
    for start in range(0, len(content), 1 << 16):
        piece = content[start : start + (1 << 16)]
        parts += [b"\xf4", struct.pack("<H", len(piece) - 1), piece]
    return b"".join(parts)


def values_of(samples: Samples) -> Iterator[tuple[int, bytes]]:
    """In the order of time; the end of a series and of each part before a pause is marked."""
    last: int | None = None
    for time in sorted(samples):
        if last is not None and time - last > _STALE_AFTER_MS:
            yield last + 1000, _STALE
        yield time, struct.pack("<d", samples[time])
        last = time
    if last is not None:
        yield last + 1000, _STALE


def messages(gathered: Gathered) -> Iterator[tuple[bytes, int]]:
    """Bodies of requests and their numbers of samples: all series of a minute, then the next."""
    slices: dict[int, list[bytes]] = {}
    counts: dict[int, int] = {}
    for series, samples in gathered.recording.series.items():
        labels = labels_of(series, gathered.own)
        parts: dict[int, list[bytes]] = {}
        for time, value in values_of(samples):
            moved = time + gathered.shift_ms
            parts.setdefault(moved // _SLICE_MS, []).append(_sample(moved, value))
        for number, found in parts.items():
            slices.setdefault(number, []).append(_field(1, labels + b"".join(found)))
            counts[number] = counts.get(number, 0) + len(found)
    for number in sorted(slices):
        yield from _bodies(slices.pop(number), counts[number])


def _bodies(series: Iterable[bytes], count: int) -> Iterator[tuple[bytes, int]]:
    """One minute in requests of about a megabyte; samples are counted with the last."""
    held: list[bytes] = []
    size = 0
    for one in series:
        if held and size + len(one) > _MOST_BYTES:
            yield snappy(b"".join(held)), 0
            held, size = [], 0
        held.append(one)
        size += len(one)
    yield snappy(b"".join(held)), count


async def send(to: Address, gathered: Gathered, token: str = "") -> AsyncIterator[int]:
    """Send all of a run; yields how many samples (with end marks) are written so far."""
    headers = {**_HEADERS, **to.with_token(token).headers}
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    done = 0
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        for body, count in messages(gathered):
            await _post(session, to.url, body)
            done += count
            yield done


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    said = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
        try:
            async with session.post(url, data=body) as reply:
                if reply.ok:
                    return
                said = f"status {reply.status}: {await first_words(reply)}"
                if reply.status not in _LATER:
                    break
        except (aiohttp.ClientError, TimeoutError) as error:
            said = in_one_line(error)
    raise ReplayFailed(f"{url} did not take the run: {said}{_hint(said)}")


def _hint(said: str) -> str:
    if "404" in said[:11]:
        return " (a Prometheus needs --web.enable-remote-write-receiver, path /api/v1/write)"
    if "future" in said:
        return " (--at now moves the runs so that they end now)"
    if any(word in said for word in ("out of bounds", "out of order", "too old", "too far behind")):
        return (
            " (it has newer samples: --at now, or a database with"
            " storage.tsdb.out_of_order_time_window)"
        )
    return ""
