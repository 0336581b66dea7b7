"""The recorder: a bounded ring of pages on disk, and pieces kept of it."""

import errno
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cephqos_exporter.flight_recorder import pieces, ring
from cephqos_exporter.flight_recorder.pieces import NoRoom, Pieces, Reason
from cephqos_exporter.flight_recorder.ring import Ring, Stamp, packed
from cephqos_loadgen.recorded_pieces.pages import pages_of

ALERT = Reason("CephQosReservationViolated osd.3", "a1b2", "2026-11-25T03:00:00Z")


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def filled(folder: Path, clock: Clock, pages: int, *, most: int = 10**9) -> Ring:
    """A ring of ten minutes with a page every 15 s."""
    found = Ring(folder, 600, most, clock)
    for number in range(pages):
        found.add(Stamp(1_700_000_000_000 + number * 15_000, number), packed([b"x_total 1\n"]))
        clock.now += 15
    return found


def test_the_ring_holds_the_last_minutes_and_no_more(tmp_path: Path) -> None:
    clock = Clock()
    kept = filled(tmp_path, clock, 200)
    held = [page.boot_ms for path in kept.paths for page in pages_of(path.read_bytes())]
    assert held == list(range(held[0], 200))
    assert 600 <= (200 - held[0]) * 15 <= 600 + 2 * ring.SEGMENT_SECONDS
    assert sorted(tmp_path.iterdir()) == sorted(kept.paths)
    assert kept.size == sum(path.stat().st_size for path in kept.paths)


def test_the_ring_is_bounded_in_bytes(tmp_path: Path) -> None:
    kept = filled(tmp_path, Clock(), 40, most=1000)
    assert kept.size <= 1000 + 400
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == kept.size


def test_another_process_goes_on_with_the_ring(tmp_path: Path) -> None:
    clock = Clock()
    filled(tmp_path, clock, 8)
    again = Ring(tmp_path, 600, 10**9, clock)
    again.load()
    assert len(again.paths) == 2
    again.add(Stamp(1_800_000_000_000, 9), packed([b""]))
    assert len(again.paths) == 3, "never behind what may be cut off"


def test_a_page_that_was_cut_off_is_left_out_and_the_others_are_not(tmp_path: Path) -> None:
    (path,) = filled(tmp_path, Clock(), 4).paths
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) - 20, 3 * len(whole) // 4 + 5):
        assert [page.boot_ms for page in pages_of(whole[:length])] == [0, 1, 2]
    assert list(pages_of(b"")) == list(pages_of(b"garbage")) == []
    assert len(list(pages_of(whole + b"\0" * 40))) == 4


def test_a_disk_that_fills_up_costs_that_page_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    kept = filled(tmp_path, clock, 2)
    begin = Ring._write

    def half(self: Ring, path: Path, data: bytes) -> None:
        begin(self, path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(Ring, "_write", half)
        kept.add(Stamp(2, 2), packed([b""]))
    kept.add(Stamp(3, 3), packed([b""]))
    held = [page.boot_ms for path in kept.paths for page in pages_of(path.read_bytes())]
    assert held == [0, 1, 3]


def test_a_file_system_that_is_nearly_full_gets_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "LEAST_FREE", 1.01)
    with pytest.raises(OSError, match="nearly full"):
        Ring(tmp_path, 600, 10**9).add(Stamp(1, 1), packed([b""]))
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_is_set_removes_nothing_and_overwrites_nothing(tmp_path: Path) -> None:
    clock = Clock()
    kept = Ring(tmp_path, 600, 10**9, clock)
    for wall in (5_000, 5_000, 1, 9 * 10**12, 5_000):  # the same, back, far ahead, back again
        clock.now += ring.SEGMENT_SECONDS
        kept.add(Stamp(wall, round(clock.now)), packed([b""]))
    held = [page.wall_ms for path in kept.paths for page in pages_of(path.read_bytes())]
    assert held == [5_000, 5_000, 1, 9 * 10**12, 5_000]


def test_a_ring_that_the_user_has_removed_holds_up_nothing(tmp_path: Path) -> None:
    clock = Clock()
    kept = filled(tmp_path / "ring", clock, 8)
    shutil.rmtree(tmp_path / "ring")
    kept.add(Stamp(1_800_000_000_000, 9), packed([b""]))
    kept.sync()
    assert kept.paths == list((tmp_path / "ring").iterdir())


# -- pieces --------------------------------------------------------------------------------------


def test_a_piece_is_kept_when_the_ring_has_gone_on(tmp_path: Path) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 8)
    shelf = Pieces(tmp_path / "kept", 10, 10**9, clock)
    piece = shelf.keep([ALERT], running.paths)
    for number in range(100, 200):
        if began := running.add(Stamp(1_800_000_000_000 + number, number), packed([b""])):
            shelf.follow(began)
        clock.now += 15
    found = sorted(piece.folder.glob("*.pages.gz"))
    held = [page.boot_ms for path in found for page in pages_of(path.read_bytes())]
    assert held[:8] == list(range(8)), "what was there"
    assert held[8] == 100
    assert 300 <= (held[-1] - 99) * 15 <= 300 + ring.SEGMENT_SECONDS, "and half as long after it"
    about = json.loads((piece.folder / "piece.json").read_text())
    assert about["reasons"] == [
        {"name": ALERT.name, "fingerprint": ALERT.fingerprint, "started": ALERT.started}
    ]


def test_the_same_alert_is_kept_once_also_by_the_next_process(tmp_path: Path) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 8)
    shelf = Pieces(tmp_path / "kept", 10, 10**9, clock)
    first = shelf.keep([ALERT], running.paths)
    clock.now += 86_400
    again = Pieces(tmp_path / "kept", 10, 10**9, clock)
    (tmp_path / "kept" / "20261125T000000.000Z.new").mkdir()  # it died while it kept another one
    again.load()
    for one in (shelf, again):
        assert one.keep([ALERT], running.paths).id == first.id
        assert len(one) == 1
    assert [it.name for it in (tmp_path / "kept").iterdir()] == [first.id]


def test_alerts_of_one_incident_are_one_piece_of_bounded_length(tmp_path: Path) -> None:
    clock = Clock()
    shelf = Pieces(tmp_path, 10, 10**9, clock)
    ids = []
    for number in range(100):
        ids.append(shelf.keep([Reason("a", f"f{number}", "1")], []).id)
        clock.now += 60
    assert len(set(ids)) == 2
    assert ids.index(ids[-1]) == 60, "six times the ten minutes"


def test_an_event_at_the_end_of_a_piece_still_has_the_minutes_after_it(tmp_path: Path) -> None:
    clock = Clock()
    shelf = Pieces(tmp_path, 10, 10**9, clock)
    for number in range(60):
        last = shelf.keep([Reason("a", f"f{number}", "1")], [])
        clock.now += 60
    clock.now += 180
    shelf.listing()
    assert len(shelf) == 1
    assert shelf.listing()[0]["grows"], "four minutes after the last event of its hour"
    again = Pieces(tmp_path, 10, 10**9, clock)
    again.load()
    clock.now += 200
    assert again.keep([Reason("b", "b", "1")], []).id == last.id
    clock.now += 299
    assert again.listing()[0]["grows"], "as well after a restart"


def test_more_events_than_a_piece_names_still_have_the_minutes_after_them(tmp_path: Path) -> None:
    clock = Clock()
    shelf = Pieces(tmp_path, 10, 10**9, clock)
    shelf.keep([Reason("a", f"f{number}", "1") for number in range(90)], [])
    clock.now += 200
    shelf.keep([Reason("b", f"f{number}", "1") for number in range(20)], [])
    clock.now += 299
    (piece,) = shelf.listing()
    assert piece["grows"] and len(piece["reasons"]) == 100


def test_what_is_kept_stays_below_its_bound_with_the_minutes_that_a_piece_takes(
    tmp_path: Path,
) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 40)
    shelf = Pieces(tmp_path / "kept", 10, round(running.size * 1.5), clock)
    shelf.keep([ALERT], running.paths)
    clock.now += 86_400
    with pytest.raises(NoRoom, match="remove the folders of some"):
        shelf.keep([Reason("b", "b", "1")], running.paths)
    assert shelf.size <= running.size * 1.5


def test_pieces_that_the_user_has_removed_make_room_at_once(tmp_path: Path) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 8)
    shelf = Pieces(tmp_path / "kept", 10, running.size * 2, clock)
    old = shelf.keep([ALERT], running.paths)
    clock.now += 3600
    shutil.rmtree(old.folder)
    began = running.add(Stamp(1_800_000_000_000, 9), packed([b""]))
    assert began is not None
    shelf.follow(began)
    assert (len(shelf), shelf.size) == (0, 0)


def test_when_there_is_no_room_it_says_so_and_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "MOST_PIECES", 4)
    clock = Clock()
    shelf = Pieces(tmp_path, 10, 10**9, clock)

    def keep(fingerprint: str) -> None:
        clock.now += 86_400
        shelf.keep([Reason("a", fingerprint, "1")], [])

    keep("local:1")
    keep("local:2")
    with pytest.raises(NoRoom):
        keep("local:3")
    keep("a")
    keep("b")
    with pytest.raises(NoRoom, match=r"4 pieces of 0 MB .* remove the folders of some"):
        keep("c")
    assert len(list(tmp_path.iterdir())) == 4
    next(tmp_path.iterdir()).rename(tmp_path.parent / "elsewhere")
    keep("c")


def test_pieces_of_the_same_moment_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock may have been set back."""
    clock = Clock()
    shelf = Pieces(tmp_path, 10, 10**9, clock)
    monkeypatch.setattr(time, "time", lambda: 1764201444.9996)
    for fingerprint in ("a", "b"):
        shelf.keep([Reason("a", fingerprint, "1")], [])
        clock.now += 86_400
    names = sorted(folder.name for folder in tmp_path.iterdir())
    assert names == ["20251126T235724.999Z", "20251126T235725.000Z"]


def test_no_name_leads_out_of_a_piece(tmp_path: Path) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 4)
    shelf = Pieces(tmp_path / "kept", 10, 10**9, clock)
    piece = shelf.keep([ALERT], running.paths)
    (tmp_path / "secret").write_text("x")
    (name,) = piece.segments
    assert shelf.segment(piece.id, name) == piece.folder / name
    for bad in ("../../secret", "/etc/passwd", "", "piece.json", f"./{name}", "\0"):
        assert shelf.segment(piece.id, bad) is None
        assert shelf.segment(bad, name) is None


KILLED = """
import sys
from pathlib import Path
from cephqos_exporter.flight_recorder.pieces import Pieces, Reason
from cephqos_exporter.flight_recorder.ring import Ring, Stamp, packed
folder = Path(sys.argv[1])
ring, shelf = Ring(folder / "ring", 600, 10**9), Pieces(folder / "kept", 10, 10**9)
for number in range(10**9):
    ring.add(Stamp(10**12 + number, number), packed([b"x_total 1\\n" * 1000]))
    if number == 49:
        ring.sync()
        print(shelf.keep([Reason("a", "a", "1")], ring.paths).id, flush=True)
"""


def test_an_exporter_that_is_killed_while_it_writes_loses_nothing_that_it_kept(
    tmp_path: Path,
) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        process.kill()
    shelf, running = Pieces(tmp_path / "kept", 10, 10**9), Ring(tmp_path / "ring", 600, 10**9)
    shelf.load()
    running.load()
    (piece,) = shelf.listing()
    assert piece["id"] == said
    running.add(Stamp(2 * 10**12, 10**9), packed([b""]))
    for folder in (tmp_path / "kept" / said, tmp_path / "ring"):
        files = sorted(folder.glob("*.pages.gz"))
        held = [page.boot_ms for path in files for page in pages_of(path.read_bytes())]
        assert held[:50] == list(range(50))
    assert 10**9 in held, "and the next process goes on"


def test_a_disk_that_is_full_when_a_piece_is_kept_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    running = filled(tmp_path / "ring", clock, 8)
    shelf = Pieces(tmp_path / "kept", 10, 10**9, clock)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(pieces, "_write", full)
        shelf.keep([ALERT], running.paths)
    assert list((tmp_path / "kept").iterdir()) == []
    assert shelf.keep([ALERT], running.paths).segments
