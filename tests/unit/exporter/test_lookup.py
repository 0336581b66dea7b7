"""Questions that are never answered cost those who asked them."""

import threading
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.replay.host_tree import HostTree

from cephqos_exporter import sysfs
from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.daemon import ReplyMissing
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.sysfs import DataDirectoryMissing, OsdDevice, osd_devices

from ..collectors.host_views import PID, samples, view

DATA = "/var/lib/ceph/osd/ceph-3"
REPLIES = {"config show": {"osd_data": DATA}}


@pytest.mark.timeout(30)
def test_those_that_hang_are_waited_for_once_and_are_of_bounded_number() -> None:
    back = threading.Event()
    began = monotonic()
    for _ in range(200):
        with pytest.raises(TimeoutError):
            Lookup(back.wait).answer()
    took = monotonic() - began
    threads = [one for one in threading.enumerate() if one.name == "lookup"]
    back.set()
    for one in threads:
        one.join()
    assert len(threads) <= 64
    assert took < 10, "not half a second for each"
    assert Lookup(lambda: 7).answer() == 7
    with pytest.raises(ZeroDivisionError):
        Lookup(lambda: 1 // 0).answer()


def test_where_no_thread_can_be_started_it_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The user or the container has as many as it may; what was given up takes no place."""

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    lookup = Lookup(lambda: 7)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        for _ in range(100):
            with pytest.raises(TimeoutError):
                lookup.answer()
    assert lookup.answer() == 7


def test_a_data_directory_of_millions_of_files_is_not_listed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon says where it is, and a zero byte is no part of a path."""
    monkeypatch.setattr(sysfs, "_MOST_NAMES", 10)
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert len(sysfs._names_in(str(tmp_path))) == 10
    daemon = view(HostTree(tmp_path).host).daemon
    with pytest.raises(DataDirectoryMissing, match="gone"):
        osd_devices(HostTree(tmp_path).host, daemon, "/a\0b", ())


@pytest.mark.timeout(30)
def test_a_data_directory_that_does_not_answer_costs_its_own_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a disk that died, or of a file system that a daemon has put there itself."""
    tree = HostTree(tmp_path)
    tree.disk("sda", "8:0")
    tree.data_directory(PID, DATA, {"block": "/dev/sda"})
    asked, back = threading.Event(), threading.Event()

    def hangs(*found: Any) -> list[OsdDevice]:
        asked.set()
        assert back.wait(20)
        return osd_devices(*found)

    monkeypatch.setattr(sysfs, "osd_devices", hangs)
    collector = DisksCollector()
    for time in (1000.0, 1005.0):
        with pytest.raises(ReplyMissing, match="timeout"):
            collector.collect(view(tree.host, time, replies=REPLIES))
    assert asked.is_set()
    back.set()
    for _ in range(1000):
        with suppress(ReplyMissing):
            found = samples(collector.collect(view(tree.host, 1010.0, replies=REPLIES)))
            break
        sleep(0.01)
    assert any('role="block",layer="osd",device="sda"' in series for series in found)
