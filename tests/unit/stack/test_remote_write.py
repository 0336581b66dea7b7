"""What remote write sends, read back by decoders written from the formats."""

import struct
from collections.abc import Iterator

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_server import serving

from cephqos_base.servers import Address
from cephqos_loadgen.archive.run_samples import RecordedRun
from cephqos_stack.replay import remote_write
from cephqos_stack.replay.gather import Gathered, ReplayedBlocks
from cephqos_stack.replay.programs import ReplayFailed
from cephqos_stack.replay.remote_write import messages, send, snappy, varint

STALE = 0x7FF0000000000002
AT = 1_800_000_000_000


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def unsnapped(data: bytes) -> bytes:
    """Literals only: a tag whose lower bits are 0; its upper six are the length less one, or say
    in how many bytes it follows."""
    total, at = read_varint(data, 0)
    out = b""
    while at < len(data):
        tag, at = data[at], at + 1
        assert tag & 3 == 0
        length = tag >> 2
        if length >= 60:
            wide = length - 59
            length, at = int.from_bytes(data[at : at + wide], "little"), at + wide
        out, at = out + data[at : at + length + 1], at + length + 1
    assert len(out) == total
    return out


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 2:
            length, at = read_varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length
        elif key & 7 == 1:
            yield key >> 3, data[at : at + 8]
            at += 8
        else:
            number, at = read_varint(data, at)
            yield key >> 3, number


def read(body: bytes) -> Iterator[tuple[tuple[tuple[str, str], ...], list[tuple[int, int]]]]:
    """Labels in the order sent; samples as time and the bits of the value."""
    for number, series in fields(unsnapped(body)):
        assert number == 1 and isinstance(series, bytes)
        labels, samples = [], []
        for part, content in fields(series):
            assert isinstance(content, bytes)
            found = dict(fields(content))
            if part == 1:
                labels.append((_bytes(found[1]).decode(), _bytes(found[2]).decode()))
            else:
                time = found[2]
                assert isinstance(time, int)
                samples.append((time, struct.unpack("<Q", _bytes(found[1]))[0]))
        yield tuple(labels), samples


def _bytes(value: bytes | int) -> bytes:
    assert isinstance(value, bytes)
    return value


def gathered(series: dict[str, dict[int, float]], shift_ms: int = 0) -> Gathered:
    about = ReplayedBlocks("r", 0.0, 0.0, 0, 0)
    return Gathered(RecordedRun({}, series), {"run": "r"}, shift_ms, about)


def bits(value: float) -> int:
    (found,) = struct.unpack("<Q", struct.pack("<d", value))
    assert isinstance(found, int)
    return found


@given(st.integers(0, 2**63 - 1))
def test_a_number_is_read_back(number: int) -> None:
    assert read_varint(varint(number), 0) == (number, len(varint(number)))


@pytest.mark.parametrize("length", [0, 1, 59, 60, 61, 65_535, 65_536, 65_537, 300_000])
def test_bytes_are_read_back_at_every_length_of_a_literal(length: int) -> None:
    data = bytes(number % 251 for number in range(length))
    assert unsnapped(snappy(data)) == data


@given(st.dictionaries(st.integers(0, 10**6), st.floats(allow_nan=False), min_size=1, max_size=30))
def test_every_sample_is_sent_with_its_exact_value_in_order_and_an_end(
    seconds: dict[int, float],
) -> None:
    samples = {AT + second * 1000: value for second, value in seconds.items()}
    sent = [
        sample
        for body, _ in messages(gathered({'m{a="1"}': samples}, shift_ms=500))
        for _, found in read(body)
        for sample in found
    ]
    assert [time for time, _ in sent] == sorted(time for time, _ in sent)
    values = [(time - 500, value) for time, value in sent if value != STALE]
    assert values == [(time, bits(samples[time])) for time in sorted(samples)]
    assert sent[-1] == (max(samples) + 1500, STALE)


def test_labels_are_sorted_with_the_name_among_them_and_ours_win() -> None:
    ((body, count),) = messages(gathered({'up{run="x",Zone="ü"}': {AT: 1.0}}))
    ((labels, _),) = read(body)
    assert labels == (("Zone", "ü"), ("__name__", "up"), ("exported_run", "x"), ("run", "r"))
    assert count == 2


def test_a_pause_is_marked_and_a_gap_of_a_sample_is_not() -> None:
    samples = {AT + second * 1000: 1.0 for second in (0, 1, 3, 20)}
    ((body, _),) = messages(gathered({"m{}": samples}))
    ((_, sent),) = read(body)
    assert [(t - AT) // 1000 for t, value in sent if value == STALE] == [4, 21]


def test_all_series_of_a_minute_go_before_the_next_minute_and_bodies_are_bounded() -> None:
    start = AT - AT % 60_000
    series = {
        f'm{{n="{n}"}}': {start + s * 1000: float(s) for s in range(180)} for n in range(2000)
    }
    last, total = 0, 0
    for body, _ in messages(gathered(series)):
        assert len(body) < 1.2e6
        minutes = {time // 60_000 for _, samples in read(body) for time, _ in samples}
        assert len(minutes) == 1 and min(minutes) >= last
        last = max(last, *minutes)
        total += sum(len(samples) for _, samples in read(body))
    assert total == 2000 * 181


@pytest.mark.parametrize(
    ("answers", "requests", "words"),
    [
        ([200], 1, ""),
        ([503, 429, 200], 3, ""),
        ([400], 1, "status 400: out of bounds .*--at now"),
        ([503] * 9, 5, "status 503"),
    ],
)
async def test_what_a_database_answers_decides(
    answers: list[int], requests: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_write, "_PAUSE_SECONDS", 0.0)
    seen: list[tuple[str, bytes]] = []

    async def take(request: web.Request) -> web.Response:
        seen.append((request.headers["Authorization"], await request.read()))
        return web.Response(status=answers.pop(0), text="out of bounds\n")

    async with serving({"POST /write": take}) as database:
        url = Address(f"{database}/write")
        if words:
            with pytest.raises(ReplayFailed, match=words) as caught:
                _ = [done async for done in send(url, gathered({"m{}": {AT: 1.0}}), "t")]
            assert "\n" not in str(caught.value)
        else:
            assert [done async for done in send(url, gathered({"m{}": {AT: 1.0}}), "t")] == [2]
    assert len(seen) == requests and {token for token, _ in seen} == {"Bearer t"}
    assert len({body for _, body in seen}) == 1
