"""The disks collector on written trees: dm-crypt over LVM, partitions, loop, NVMe, FileStore."""

import os
from pathlib import Path

import pytest
from tests.replay.host_tree import HostTree

from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.labels import render_labels
from cephqos_exporter.sysfs import (
    DataDirectoryMissing,
    OsdDevice,
    Queue,
    device_by_number,
    disks_under,
    osd_devices,
    read_hardware,
    read_queue,
)

from .host_views import PID, samples
from .host_views import view as host_view

DATA = "/var/lib/ceph/osd/ceph-3"
# reads: 10, merged 1, 2048 sectors, 500 ms; writes: 20, merged 2, 4096 sectors, 1500 ms;
# 3 in progress, 900 ms busy, 2500 ms weighted; discards: 4, 5, 8 sectors, 60 ms; 7 flushes, 80 ms
COUNTS = (10, 1, 2048, 500, 20, 2, 4096, 1500, 3, 900, 2500, 4, 5, 8, 60, 7, 80)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


def view(tree: HostTree, time: float = 1000.0, *, pid: int | None = PID) -> DaemonView:
    return host_view(tree.host, time, pid=pid, replies={"config show": {"osd_data": DATA}})


def places(found: dict[str, float]) -> set[str]:
    """role, layer and device of each row shown."""
    start = "cephqos_disks_in_progress{"
    return {key.removeprefix(start).rstrip("}") for key in found if key.startswith(start)}


def encrypted(tree: HostTree) -> None:
    """An LV on an encrypted partition of a spinning disk, its DB on a quarter of an NVMe."""
    tree.disk("sda", "8:0", COUNTS, scheduler="none [mq-deadline] bfq", rotational=True)
    tree.partition("sda", "sda2", "8:2")
    tree.mapped("dm-0", "253:0", ["sda2"], links=["mapper/luks-sda2"])
    tree.mapped("dm-1", "253:1", ["dm-0"], links=["ceph-vg/osd-block-1", "mapper/ceph--vg-osd"])
    tree.disk("nvme0n1", "259:0", scheduler="[none] mq-deadline")
    tree.mapped("dm-2", "253:2", ["nvme0n1"], links=["ceph-db/osd-db-1"])
    tree.data_directory(
        PID, DATA, {"block": "/dev/ceph-vg/osd-block-1", "block.db": "/dev/ceph-db/osd-db-1"}
    )


def test_an_encrypted_logical_volume_is_followed_down_to_its_disk(tree: HostTree) -> None:
    encrypted(tree)
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="dm-1"',
        'role="block",layer="disk",device="sda"',
        'role="db",layer="osd",device="dm-2"',
        'role="db",layer="disk",device="nvme0n1"',
    }


def test_every_field_of_diskstats_is_shown_in_base_units(tree: HostTree) -> None:
    encrypted(tree)
    found = samples(DisksCollector().collect(view(tree)))
    disk = 'role="block",layer="disk",device="sda"'
    name = "cephqos_disks_"
    assert {key: value for key, value in found.items() if disk in key and "_info" not in key} == {
        f'{name}ops_total{{{disk},op="read"}}': 10,
        f'{name}ops_total{{{disk},op="write"}}': 20,
        f'{name}ops_total{{{disk},op="discard"}}': 4,
        f'{name}ops_total{{{disk},op="flush"}}': 7,
        f'{name}merged_total{{{disk},op="read"}}': 1,
        f'{name}merged_total{{{disk},op="write"}}': 2,
        f'{name}merged_total{{{disk},op="discard"}}': 5,
        f'{name}bytes_total{{{disk},op="read"}}': 1024 * 1024,
        f'{name}bytes_total{{{disk},op="write"}}': 2 * 1024 * 1024,
        f'{name}bytes_total{{{disk},op="discard"}}': 4096,
        f'{name}time_seconds_total{{{disk},op="read"}}': 0.5,
        f'{name}time_seconds_total{{{disk},op="write"}}': 1.5,
        f'{name}time_seconds_total{{{disk},op="discard"}}': 0.06,
        f'{name}time_seconds_total{{{disk},op="flush"}}': 0.08,
        f"{name}in_progress{{{disk}}}": 3,
        f"{name}busy_seconds_total{{{disk}}}": 0.9,
        f"{name}weighted_seconds_total{{{disk}}}": 2.5,
    }


def test_what_an_older_kernel_does_not_count_is_absent(tree: HostTree) -> None:
    tree.disk("sda", "8:0", COUNTS[:11])
    tree.data_directory(PID, DATA, {"block": "/dev/sda"})
    found = samples(DisksCollector().collect(view(tree)))
    assert not [key for key in found if "discard" in key or "flush" in key]
    assert len(found) == 11 + 1


def test_queue_settings_are_an_info_metric_that_follows_changes(tree: HostTree) -> None:
    encrypted(tree)
    collector = DisksCollector()
    info = 'cephqos_disks_info{role="block",layer="disk",device="sda",scheduler="%s",'
    rest = 'nr_requests="256",read_ahead_kb="128",rotational="1",write_cache="write back"}'
    assert samples(collector.collect(view(tree)))[info % "mq-deadline" + rest] == 1
    queue = tree.host.sys / "class" / "block" / "sda" / "queue"
    (queue / "scheduler").write_text("none mq-deadline [bfq]\n")
    collector.finish()
    assert samples(collector.collect(view(tree, 1010)))[info % "mq-deadline" + rest] == 1
    collector.finish()
    assert samples(collector.collect(view(tree, 1031)))[info % "bfq" + rest] == 1


def test_diskstats_is_read_once_per_scrape_and_anew_in_the_next(tree: HostTree) -> None:
    encrypted(tree)
    collector = DisksCollector()
    key = 'cephqos_disks_ops_total{role="block",layer="disk",device="sda",op="read"}'
    assert samples(collector.collect(view(tree)))[key] == 10
    tree.count("sda", "8:0", (11, *COUNTS[1:]))
    assert samples(collector.collect(view(tree)))[key] == 10
    collector.finish()
    assert samples(collector.collect(view(tree, 1015)))[key] == 11


def test_layers_can_be_left_out(tree: HostTree) -> None:
    encrypted(tree)
    assert places(samples(DisksCollector(layers=("disk",)).collect(view(tree)))) == {
        'role="block",layer="disk",device="sda"',
        'role="db",layer="disk",device="nvme0n1"',
    }


def test_a_whole_disk_that_the_osd_opens_shows_once(tree: HostTree) -> None:
    tree.disk("nvme1n1", "259:1")
    tree.data_directory(PID, DATA, {"block": "/dev/nvme1n1"})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="nvme1n1"'
    }


def test_a_wal_and_a_volume_over_two_disks(tree: HostTree) -> None:
    for name, number in (("sdb", "8:16"), ("sdc", "8:32"), ("nvme0n1", "259:0")):
        tree.disk(name, number)
    tree.partition("nvme0n1", "nvme0n1p3", "259:3")
    tree.mapped("dm-7", "253:7", ["sdb", "sdc"], links=["vg/striped"])
    tree.data_directory(PID, DATA, {"block": "/dev/vg/striped", "block.wal": "/dev/nvme0n1p3"})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="dm-7"',
        'role="block",layer="disk",device="sdb"',
        'role="block",layer="disk",device="sdc"',
        'role="wal",layer="osd",device="nvme0n1p3"',
        'role="wal",layer="disk",device="nvme0n1"',
    }


def test_a_loop_device_leads_to_the_disk_of_its_file(tree: HostTree) -> None:
    tree.disk("vda", "254:0")
    tree.partition("vda", "vda1", "254:1")
    tree.loop("loop3", "7:3", "/srv/images/osd.img")
    tree.mounts(1, [("254:1", "/", "/dev/vda1")])
    tree.data_directory(PID, DATA, {"block": "/dev/loop3"})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="loop3"',
        'role="block",layer="disk",device="vda"',
    }


def test_a_loop_device_on_another_leads_through_it_to_the_disk(tree: HostTree) -> None:
    tree.disk("vda", "254:0")
    tree.loop("loop2", "7:2", "/srv/images/osd.img")
    tree.loop("loop3", "7:3", "/dev/loop2")
    tree.mounts(1, [("254:0", "/", "/dev/vda"), ("0:6", "/dev", "devtmpfs")])
    tree.data_directory(PID, DATA, {"block": "/dev/loop3"})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="loop3"',
        'role="block",layer="disk",device="vda"',
    }


def test_an_osd_in_a_file_has_the_device_of_its_file_system(tree: HostTree) -> None:
    tree.disk("vdb", "254:16")
    tree.mounts(PID, [("254:16", "/var/lib/ceph", "/dev/vdb")])
    tree.data_directory(PID, DATA, {"block": ""})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="disk",device="vdb"'
    }


def test_a_file_system_without_a_number_of_its_own_is_found_by_its_source(tree: HostTree) -> None:
    tree.disk("vdc", "254:32")
    tree.mounts(PID, [("0:48", "/var/lib/ceph", "/dev/vdc")])  # btrfs
    tree.data_directory(PID, DATA, {"block": ""})
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="disk",device="vdc"'
    }


def test_filestore_has_its_mount_and_its_journal(tree: HostTree) -> None:
    tree.disk("sdd", "8:48")
    tree.partition("sdd", "sdd1", "8:49")
    tree.disk("nvme0n1", "259:0")
    tree.mounts(PID, [("8:1", "/", "/dev/sda1"), ("8:49", DATA, "/dev/sdd1")])
    directory = tree.data_directory(PID, DATA, {"journal": "/dev/nvme0n1", "whoami": ""})
    (directory / "current").mkdir()
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="sdd1"',
        'role="block",layer="disk",device="sdd"',
        'role="journal",layer="osd",device="nvme0n1"',
    }


def test_a_second_device_of_seastore_is_one_more_block_device(tree: HostTree) -> None:
    tree.disk("nvme0n1", "259:0")
    tree.disk("sde", "8:64")
    links = {"block": "/dev/nvme0n1", "block.HDD.1": "/dev/sde", "block.tmp": "/dev/null"}
    tree.data_directory(PID, DATA, links)
    assert places(samples(DisksCollector().collect(view(tree)))) == {
        'role="block",layer="osd",device="nvme0n1"',
        'role="block",layer="osd",device="sde"',
    }


def test_a_data_directory_of_the_host_serves_where_the_daemons_own_view_does_not(
    tree: HostTree, tmp_path: Path
) -> None:
    tree.disk("sdb", "8:16")
    directory = tmp_path / "lib" / "c0ffee" / "osd.3"
    directory.mkdir(parents=True)
    (directory / "block").symlink_to("/dev/sdb")
    collector = DisksCollector(data_dirs=(f"{tmp_path}/lib/{{cluster}}/osd.{{id}}",))
    expected = {'role="block",layer="osd",device="sdb"'}
    assert places(samples(collector.collect(view(tree)))) == expected
    collector = DisksCollector(data_dirs=(f"{tmp_path}/lib/{{cluster}}/osd.{{id}}",))
    assert places(samples(collector.collect(view(tree, pid=None)))) == expected


def test_a_directory_of_the_host_that_is_another_osds_is_not_taken(
    tree: HostTree, tmp_path: Path
) -> None:
    tree.disk("sdb", "8:16")
    directory = tmp_path / "osd"
    directory.mkdir()
    (directory / "block").symlink_to("/dev/sdb")
    (directory / "ceph_fsid").write_text("c0ffee\n")
    (directory / "whoami").write_text("3\n")
    daemon = view(tree, pid=None).daemon
    assert osd_devices(tree.host, daemon, str(directory), ()) == [OsdDevice("block", "sdb")]
    (directory / "whoami").write_text("4\n")
    with pytest.raises(DataDirectoryMissing):
        osd_devices(tree.host, daemon, str(directory), ())
    (directory / "whoami").write_text("3\n")
    (directory / "ceph_fsid").write_text("decaf\n")
    with pytest.raises(DataDirectoryMissing):
        osd_devices(tree.host, daemon, str(directory), ())


def test_an_osd_whose_devices_cannot_be_found_is_reported_and_looked_for_again(
    tree: HostTree,
) -> None:
    collector = DisksCollector(data_dirs=())
    with pytest.raises(ReplyMissing, match="data directory: gone"):
        list(collector.collect(view(tree)))
    tree.disk("sdb", "8:16")
    tree.data_directory(PID, DATA, {"block": "/dev/sdb"})
    with pytest.raises(ReplyMissing, match="data directory: gone"):
        list(collector.collect(view(tree, 1010)))
    assert places(samples(collector.collect(view(tree, 1031))))


def test_an_osd_that_did_not_say_where_its_data_is_is_asked_in_the_next_scrape(
    tree: HostTree,
) -> None:
    collector = DisksCollector(data_dirs=())
    tree.disk("sdb", "8:16")
    tree.data_directory(PID, "/elsewhere", {"block": "/dev/sdb"})
    with pytest.raises(ReplyMissing, match="data directory"):
        list(collector.collect(host_view(tree.host, 1000.0, pid=PID)))
    said = host_view(
        tree.host, 1001.0, pid=PID, replies={"config show": {"osd_data": "/elsewhere"}}
    )
    assert collector.commands(said.daemon)
    assert places(samples(collector.collect(said)))


def test_an_osd_is_asked_for_its_configuration_until_its_devices_are_known_and_then_no_more(
    tree: HostTree,
) -> None:
    tree.disk("sdb", "8:16")
    tree.data_directory(PID, DATA, {"block": "/dev/sdb"})
    daemon = view(tree).daemon
    for first in (view(tree), host_view(tree.host, pid=PID)):  # it says where, or it did not answer
        collector = DisksCollector()
        assert collector.commands(daemon) == (Command("config show"),)
        assert places(samples(collector.collect(first)))
        assert not collector.commands(daemon)


def test_an_osd_that_has_said_where_its_data_is_is_not_asked_again_if_nothing_is_there(
    tree: HostTree,
) -> None:
    collector = DisksCollector(data_dirs=())
    with pytest.raises(ReplyMissing, match="data directory: gone"):
        list(collector.collect(view(tree)))
    assert not collector.commands(view(tree).daemon)
    tree.disk("sdb", "8:16")
    tree.data_directory(PID, DATA, {"block": "/dev/sdb"})
    assert places(samples(collector.collect(host_view(tree.host, 1031, pid=PID))))


def test_a_directory_that_may_not_be_read_is_told_apart_from_one_that_is_not_there(
    tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise PermissionError

    monkeypatch.setattr("cephqos_exporter.sysfs.os.scandir", refuse)
    with pytest.raises(ReplyMissing, match="data directory: permission"):
        list(DisksCollector(data_dirs=()).collect(view(tree)))


def test_a_restarted_osd_is_looked_at_anew(tree: HostTree) -> None:
    tree.disk("sdb", "8:16")
    tree.disk("sdc", "8:32")
    tree.data_directory(PID, DATA, {"block": "/dev/sdb"})
    tree.data_directory(PID + 1, DATA, {"block": "/dev/sdc"})
    collector = DisksCollector()
    assert 'device="sdb"' in next(iter(places(samples(collector.collect(view(tree))))))
    restarted = view(tree, 1001, pid=PID + 1)
    assert 'device="sdc"' in next(iter(places(samples(collector.collect(restarted)))))


def test_a_volume_moved_to_another_disk_is_followed_without_looking_at_the_directory_again(
    tree: HostTree,
) -> None:
    tree.disk("sdb", "8:16")
    tree.disk("sdc", "8:32")
    tree.mapped("dm-7", "253:7", ["sdb"], links=["vg/lv"])
    directory = tree.data_directory(PID, DATA, {"block": "/dev/vg/lv"})
    collector = DisksCollector()
    assert 'role="block",layer="disk",device="sdb"' in places(
        samples(collector.collect(view(tree)))
    )
    (directory / "block").unlink()
    directory.rmdir()  # as good as one that hangs
    slaves = tree.host.sys / "class" / "block" / "dm-7" / "slaves"
    (slaves / "sdb").unlink()
    (slaves / "sdc").symlink_to(tree.host.sys / "class" / "block" / "sdc")
    assert places(samples(collector.collect(view(tree, 1301)))) == {
        'role="block",layer="osd",device="dm-7"',
        'role="block",layer="disk",device="sdc"',
    }


def test_an_osd_in_memory_has_no_devices_and_is_no_error(tree: HostTree) -> None:
    tree.disk("sdb", "8:16")
    tree.data_directory(PID, DATA, {"whoami": ""})
    assert samples(DisksCollector().collect(view(tree))) == {}


def test_a_disk_that_was_pulled_is_absent(tree: HostTree) -> None:
    encrypted(tree)
    collector = DisksCollector()
    list(collector.collect(view(tree)))
    collector.finish()
    (tree.host.proc / "diskstats").write_text("")
    assert places(samples(collector.collect(view(tree, 1015)))) == set()


def test_links_that_lead_in_a_circle_end(tree: HostTree) -> None:
    directory = tree.data_directory(PID, DATA, {"block": "/dev/a"})
    tree.host.dev.joinpath("a").symlink_to("b")
    tree.host.dev.joinpath("b").symlink_to("a")
    found = osd_devices(tree.host, view(tree).daemon, DATA, ())
    assert found == []
    assert directory.joinpath("block").is_symlink()


def test_devices_stacked_in_a_circle_end(tree: HostTree) -> None:
    tree.mapped("dm-0", "253:0", ["dm-1"])
    tree.mapped("dm-1", "253:1", ["dm-0"])
    assert disks_under(tree.host, "dm-0") == ()


def test_a_scheduler_without_brackets_is_the_only_one(tree: HostTree) -> None:
    tree.mapped("dm-0", "253:0", [])
    queue = read_queue(tree.host.sys, "dm-0")
    assert queue == Queue("none", "1023", "128", "0", "write back")
    assert read_queue(tree.host.sys, "nothing") == Queue("", "", "", "", "")


def test_nothing_is_shown_for_daemons_that_are_no_osds(tree: HostTree) -> None:
    daemon = Daemon("mon", "a", "c0ffee", Path("/run/ceph/mon.a.asok"), PID)
    mon = DaemonView(daemon, render_labels(daemon.labels), {}, {}, 1.0, tree.host)
    assert list(DisksCollector().collect(mon)) == []
    assert DisksCollector().commands(daemon) == ()


def test_a_real_device_node_is_named_by_its_number() -> None:
    blocks = sorted(Path("/sys/dev/block").glob("*"))
    if not blocks:
        pytest.skip("this machine shows no block device in /sys/dev/block")
    number = blocks[0].name
    name = device_by_number(Path("/sys"), number)
    assert name == os.path.realpath(blocks[0]).rsplit("/", 1)[1]
    assert device_by_number(Path("/sys"), "4095:1") is None


def test_a_file_on_this_machine_leads_to_a_device_of_proc_diskstats(tmp_path: Path) -> None:
    """No fixture: the real /proc, /sys and mounts, with this process as the daemon."""
    (tmp_path / "block").write_text("")
    daemon = Daemon("osd", "3", "c0ffee", Path("/x"), os.getpid())
    tree = HostTree(tmp_path / "unused")
    real = type(tree.host)()
    found = osd_devices(real, daemon, str(tmp_path), ())
    number = tmp_path.stat().st_dev
    if os.major(number) == 0:
        pytest.skip(f"{tmp_path} is on a file system without a block device")
    expected = device_by_number(real.sys, f"{os.major(number)}:{os.minor(number)}")
    assert expected is not None
    assert found == [OsdDevice("block", expected, in_file=True)]
    names = {line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()}
    assert {expected, *disks_under(real, expected)} <= names


def test_a_disk_says_its_model_firmware_and_controller(tmp_path: Path) -> None:
    disk = tmp_path / "devices/pci0000:00/0000:00:1f.2/ata1/block/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "device").mkdir()
    (disk / "device/model").write_text("VENDOR SSD 1  \n")
    (disk / "device/rev").write_text("1.0\n")
    block = tmp_path / "class/block"
    block.mkdir(parents=True)
    (block / "sda").symlink_to(disk)
    (block / "sda1").symlink_to(disk / "sda1")
    said = {"model": "VENDOR SSD 1", "firmware": "1.0", "controller": "0000:00:1f.2"}
    assert read_hardware(tmp_path, "sda") == said
    assert read_hardware(tmp_path, "sda1") == said
    assert read_hardware(tmp_path, "dm-1") == {}
