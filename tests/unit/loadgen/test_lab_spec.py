"""What the lab's options may be, and the ceph.conf that they make."""

import base64
import configparser
import dataclasses
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.errors import UsageError
from cephqos_base.units import parse_cpu_list, parse_size
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab import checks
from cephqos_loadgen.lab.cli import faults_in_words
from cephqos_loadgen.lab.daemons.ceph_conf import render_conf
from cephqos_loadgen.lab.daemons.keyrings import write_keyrings
from cephqos_loadgen.lab.isolation import cgroups
from cephqos_loadgen.lab.isolation.ports import PORTS_PER_LAB, reserve_ports
from cephqos_loadgen.lab.paths import LabPaths, cache_dir, labs_dir
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import LabSpec, osds_in_words, with_regime
from cephqos_loadgen.processes import how_it_ended

PATHS = LabPaths(Path("/labs"), "one")
FSID = "11111111-2222-3333-4444-555555555555"


def conf(**options: Any) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(render_conf(LabSpec(**options), PATHS, FSID, 20000))
    return parser


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": 80}, "--port 80: expected 1024 to 65135"),
        ({"port": 65300}, "--port 65300: expected 1024 to 65135"),
        ({"timeout": -1.0}, "--timeout -1.0: expected a number of seconds above 0"),
        ({"timeout": float("nan")}, "--timeout nan"),
        ({"release": "quincy"}, "unknown release 'quincy'.*pacific.*reef.*tentacle"),
        ({"osds": 0}, "--osds 0: expected 1 to 16"),
        ({"osds": 17}, "--osds 17: expected 1 to 16"),
        ({"name": "../up"}, "name '../up'"),
        ({"name": "x" * 31}, "at most 30"),
        ({"osd_size": 1 << 20}, "at least 1G"),
        ({"backing": "nvme"}, "--backing 'nvme': expected one of file, loop"),
        ({"op_queue": "fifo"}, "--op-queue 'fifo'"),
        ({"io_scheduler": "cfq", "backing": "loop"}, "--io-scheduler 'cfq'"),
        ({"io_scheduler": "bfq"}, "--io-scheduler needs a device.*--backing loop"),
        ({"rotational": False}, "--rotational needs a device"),
        ({"db_size": 2 << 30}, "--db-device needs a device"),
        ({"device_iops": 400}, "--device-iops needs a device"),
        ({"request_size": 65536, "device_iops": 9, "backing": "loop"}, "and --one-budget 1"),
        ({"device_iops": 0, "backing": "loop"}, "--device-iops 0: expected 1 or more"),
        ({"one_budget": True}, "--one-budget says how --device-iops is meant"),
        (
            {"one_budget": True, "device_iops": 9, "backing": "loop", "release": "pacific"},
            "the tree of pacific has no qemu-storage-daemon.*--one-budget 0",
        ),
        ({"regime": "fast"}, "--regime 'fast': expected one of scheduler"),
        ({"setuser": "nobody"}, "--setuser 'nobody'"),
        ({"objectstore": "filestore"}, "Ceph 18.2 no longer has FileStore"),
        ({"objectstore": "filestore", "release": "pacific"}, "needs --backing loop"),
        ({"fs": "xfs"}, "--fs is FileStore's"),
        ({"settings": (CephOption("disk", "a", "b"),)}, "section 'disk'"),
        ({"cpus": ((4, (0,)),)}, "OSDs 0 to 3 only"),
        ({"cpus": ((1, (0,)),), "osds": 1}, "--cpus 1=…: the lab has osd.0 only"),
        ({"auth": "kerberos"}, "--auth 'kerberos': expected one of none, cephx"),
    ],
)
def test_what_the_lab_cannot_do_is_refused_in_one_line(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        LabSpec(**options).validate()
    assert "\n" not in str(caught.value)


def test_a_lab_with_keys_asks_for_them_everywhere_and_says_where_they_are() -> None:
    plain, keys = conf()["global"], conf(auth="cephx")["global"]
    for who in ("cluster", "service", "client"):
        assert plain[f"auth_{who}_required"] == "none"
        assert keys[f"auth_{who}_required"] == "cephx"
    assert "keyring" not in plain
    assert keys["keyring"] == "/labs/one/keys/$name.keyring"


@pytest.mark.parametrize(
    ("release", "form"), [("pacific", (1, 16)), ("reef", (1, 16)), ("tentacle", (2, 32))]
)
def test_keyrings_hold_keys_in_cephs_form_and_only_their_owner_reads_them(
    release: str, form: tuple[int, int], tmp_path: Path
) -> None:
    paths = LabPaths(tmp_path, "one")
    paths.dir.mkdir()
    write_keyrings(paths, find_release(release), ["mgr.x", "osd.0", "osd.1"])
    parser = configparser.ConfigParser()
    parser.read(paths.keyring("mon."))
    assert set(parser.sections()) == {"mon.", "client.admin", "mgr.x", "osd.0", "osd.1"}
    secrets = set()
    for entity in parser.sections():
        key = base64.b64decode(parser[entity]["key"])
        kind, made, _, length = struct.unpack("<HIIH", key[:12])
        assert (kind, length) == form
        assert len(key) == 12 + length
        assert abs(made - time.time()) < 60
        secrets.add(key[12:])
        assert paths.keyring(entity).stat().st_mode & 0o777 == 0o600
    assert len(secrets) == 5
    own = configparser.ConfigParser()
    own.read(paths.keyring("osd.1"))
    assert own.sections() == ["osd.1"]
    assert own["osd.1"]["key"] == parser["osd.1"]["key"]
    assert own["osd.1"]["caps osd"] == '"allow *"'


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({}, []),
        ({"stop": True, "delay": None}, ["stopped", "delay not known: the OSD does not answer"]),
        ({"cut": True}, ["socket cut"]),
        ({"throttle": {"wiops": 50, "rbps": 9}}, ["throttled: wiops 50, rbps 9"]),
        ({"delay": {"seconds": 0.2, "probability": 1.0}}, ["ops delayed by 0.2 s"]),
        ({"delay": {"seconds": 2.0, "probability": 0.25}}, ["ops delayed by 2 s (25% of them)"]),
    ],
)
def test_faults_are_told_in_words(faults: dict[str, Any], words: list[str]) -> None:
    assert faults_in_words(faults) == words


def test_what_a_device_is_held_to_is_read_from_either_kind_of_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("v1", "v2"):
        monkeypatch.setattr(cgroups, f"_{version.upper()}", tmp_path / version)
    assert cgroups.limits(LabPaths(tmp_path, "one"), 0) == {}
    old = tmp_path / "v1/cephqos-one-osd.0"
    old.mkdir(parents=True)
    (old / "blkio.throttle.write_iops_device").write_text("7:3 50\n")
    (old / "blkio.throttle.read_bps_device").write_text("")
    assert cgroups.limits(LabPaths(tmp_path, "one"), 0) == {"wiops": 50}
    new = tmp_path / "v2/cephqos-one-osd.1"
    new.mkdir(parents=True)
    (new / "io.max").write_text("7:4 rbps=1048576 wbps=max riops=max wiops=9\n")
    assert cgroups.limits(LabPaths(tmp_path, "one"), 1) == {"rbps": 1048576, "wiops": 9}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_cpu_limit_is_set_and_ended_in_either_kind_of_cgroup(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_V1", tmp_path / "blkio")
    monkeypatch.setattr(cgroups, "_V1_CPU", tmp_path / "cpu")
    monkeypatch.setattr(cgroups, "_V2", tmp_path)
    if version == "v1":
        (tmp_path / "cpu").mkdir()
        (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    group = tmp_path / ("cpu" if version == "v1" else "") / "cephqos-one-osd.1"
    file = group / ("cpu.cfs_quota_us" if version == "v1" else "cpu.max")
    paths = LabPaths(tmp_path, "one")
    paths.dir.mkdir()
    cgroups.limit_cpu(paths, 1, 4711, 0.04)
    assert file.read_text().split()[0] == "4000"
    assert (group / "cgroup.procs").read_text() == "4711"
    cgroups.limit_cpu(paths, 1, 4712, None)
    assert file.read_text().split()[0] == ("-1" if version == "v1" else "max")
    assert (group / "cgroup.procs").read_text() == "4711", "what is held back is not moved"


def test_one_is_not_told_as_several() -> None:
    assert [osds_in_words(count) for count in (1, 4)] == ["1 OSD", "4 OSDs"]
    assert [how_it_ended(status) for status in (-9, 3)] == [
        "was killed by signal 9",
        "ended with status 3",
    ]


def test_a_release_is_found_by_name_and_by_version() -> None:
    assert find_release("reef") is find_release("18.2")


@pytest.mark.parametrize(
    ("text", "size"), [("10G", 10 << 30), ("512M", 512 << 20), ("1GiB", 1 << 30), ("7", 7)]
)
def test_sizes_have_binary_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "ten", "5X", "-1G", "1.5G"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a number"):
        parse_size(text)


@given(st.frozensets(st.integers(0, 200), min_size=1))
def test_a_cpu_list_means_the_same_as_its_members(cpus: frozenset[int]) -> None:
    assert set(parse_cpu_list(",".join(map(str, cpus)))) == cpus


def test_a_cpu_range_includes_both_ends() -> None:
    assert parse_cpu_list("0,2-4") == (0, 2, 3, 4)


@pytest.mark.parametrize("text", ["", "a", "1-", "0,,1"])
def test_a_cpu_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="CPU list"):
        parse_cpu_list(text, least=1)


def test_a_setting_reaches_its_section_and_wins_over_the_labs_default() -> None:
    parsed = conf(settings=(CephOption.parse("osd:osd mclock skip-benchmark=false"),))
    assert parsed["osd"]["osd_mclock_skip_benchmark"] == "false"


@pytest.mark.parametrize("text", ["osd_max_backfills=2", "osd:osd_max_backfills", "osd:=1", ""])
def test_a_setting_without_section_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="section:option=value"):
        CephOption.parse(text)


def test_everything_listens_on_loopback_in_the_labs_own_ports() -> None:
    parsed = conf()["global"]
    assert parsed["mon_host"] == "[v2:127.0.0.1:20000,v1:127.0.0.1:20001]"
    assert parsed["public_addr"] == parsed["cluster_addr"] == "127.0.0.1"
    assert parsed["ms_bind_port_min"] == "20002"
    assert parsed["ms_bind_port_max"] == str(20000 + PORTS_PER_LAB - 1)


def test_replicas_are_as_many_as_osds_up_to_three() -> None:
    sizes = [conf(osds=n)["global"]["osd_pool_default_size"] for n in (1, 2, 3, 16)]
    assert sizes == ["1", "2", "3", "3"]


def test_only_filestore_has_a_journal_and_only_bluestore_a_block_size() -> None:
    assert "bluestore_block_size" in conf()["osd"]
    filestore = conf(release="pacific", objectstore="filestore", backing="loop", fs="btrfs")["osd"]
    assert "osd_journal" in filestore
    assert "bluestore_block_size" not in filestore
    assert filestore["enable_experimental_unrecoverable_data_corrupting_features"] == "btrfs"


def test_a_spec_survives_its_json() -> None:
    spec = LabSpec(
        name="x",
        osds=2,
        backing="loop",
        rotational=True,
        db_size=1 << 31,
        settings=(CephOption("osd", "a", "b"),),
        cpus=((0, (0, 1)), (1, (2,))),
    )
    assert LabSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert dataclasses.replace(spec, osds=1) != spec


def test_two_labs_get_different_blocks_of_ports() -> None:
    first, one = reserve_ports(None)
    with one:
        second, two = reserve_ports(None)
        with two:
            assert abs(second - first) >= PORTS_PER_LAB
            with pytest.raises(UsageError, match=f"port {first}"):
                reserve_ports(first)
    again, one = reserve_ports(first)
    with one:
        assert again == first


def test_the_cache_follows_its_variable_then_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("CEPHQOS_CACHE", raising=False)
    assert cache_dir() == Path("/xdg/cephqos")
    monkeypatch.setenv("CEPHQOS_CACHE", "/own")
    assert cache_dir() == Path("/own")
    monkeypatch.setenv("CEPHQOS_LABS", "/somewhere")
    assert labs_dir() == Path("/somewhere")


def test_a_folder_too_deep_for_unix_sockets_is_refused() -> None:
    checks.check_socket_length(LabPaths(Path("/var/lib/cephqos/labs"), "x" * 30))
    with pytest.raises(UsageError, match="too long a path"):
        checks.check_socket_length(LabPaths(Path("/" + "x" * 90), "lab"))


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        checks.check_host(LabSpec())


def test_too_little_memory_is_refused_with_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(checks, "MEMORY_PER_OSD", 1 << 50)
    with pytest.raises(UsageError, match=r"4 OSDs need .* GiB of memory; .* are available"):
        checks.check_host(LabSpec())


def test_too_little_disk_is_refused_with_the_need(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "DISK_PER_OSD", 1 << 60)
    with pytest.raises(UsageError, match=r"GiB free; 4 OSDs need"):
        checks.check_disk(LabSpec(), tmp_path)


def test_a_lab_of_a_later_version_can_be_listed_and_ended() -> None:
    later = LabSpec(osds=2).to_json() | {"not_known_here": 1}
    assert LabSpec.from_json(later) == LabSpec(osds=2)


def test_a_regime_decides_what_is_not_given() -> None:
    own = (CephOption("osd", "osd_op_num_shards", "2"),)
    spec = LabSpec(**with_regime({"regime": "scheduler", "device_iops": 500, "settings": own}))
    spec.validate()
    assert (spec.backing, spec.rotational, spec.device_iops) == ("loop", False, 500)
    assert spec.one_budget and spec.device_limits == {}, "the storage daemon holds the devices"
    written = conf(**with_regime({"regime": "scheduler", "settings": own}))["osd"]
    assert written["osd_op_num_shards"] == "2", "what is given itself wins"
    assert written["bluestore_throttle_bytes"] == "32768"
    assert with_regime({"backing": None, "osds": 2}) == {"osds": 2}


def test_a_device_held_to_requests_is_priced_by_the_blobs_that_it_can_write() -> None:
    limited = conf(backing="loop", device_iops=600)["osd"]
    assert limited["osd_mclock_max_sequential_bandwidth_ssd"] == str(600 * 64 * 1024)
    assert limited["osd_mclock_max_sequential_bandwidth_hdd"] == str(600 * 64 * 1024)
    assert "osd_mclock_max_sequential_bandwidth_ssd" not in conf(backing="loop")["osd"]
    sized = conf(backing="loop", device_iops=600, one_budget=True, request_size=4096)["osd"]
    assert sized["osd_mclock_max_sequential_bandwidth_ssd"] == str(600 * 4096)
