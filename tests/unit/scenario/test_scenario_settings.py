"""Options of the cluster: what a scenario sets, whether it is taken, what is said of it."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from cephqos_exporter.ceph.monclient import ClusterUnreachable
from cephqos_exporter.sysfs import in_force
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.cluster.option_values import read_info, same_value, unfit
from cephqos_loadgen.cluster.settings import ClusterSettings, concerned, profile_first, warnings_for
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.errors import SettingRefused
from cephqos_loadgen.plan.parts import Device
from cephqos_loadgen.run.session import scheduler_of


@pytest.mark.parametrize(
    ("kind", "wanted", "found", "same"),
    [
        ("size", "256K", "262144", True),
        ("size", "256K", "262145", False),
        ("uint", "5", "5", True),
        ("bool", "true", "1", True),
        ("bool", "false", "true", False),
        ("float", "0", "0.000000", True),
        ("float", "0.9", "0.900000", True),
        ("float", "0.9", "0.800000", False),
        ("str", "wpq", "mclock_scheduler", False),
        ("int", "five", "5", False),
    ],
)
def test_spellings_of_one_value_are_told_from_other_values(
    kind: str, wanted: str, found: str, same: bool
) -> None:
    assert same_value(kind, wanted, found) is same


INFO = {"name": "o", "can_update_at_runtime": True, "min": "", "max": ""}


@pytest.mark.parametrize(
    ("info", "value", "expected"),
    [
        ({"type": "str", "enum_values": ["wpq", "mclock_scheduler"]}, "wpq", ""),
        ({"type": "str", "enum_values": ["wpq", "prioritized"]}, "wqp", "one of wpq, prioritized"),
        ({"type": "str", "enum_values": []}, "anything", ""),
        ({"type": "uint"}, "often", "a value of type uint"),
        ({"type": "size"}, "256K", ""),
        ({"type": "float", "min": 0, "max": 1.0}, "0.5", ""),
        ({"type": "float", "min": 0, "max": 1.0}, "1.5", "at most 1"),
        ({"type": "int", "min": 1}, "0", "at least 1"),
        ({"type": "bool"}, "perhaps", "a value of type bool"),
        ({"type": "secs"}, "1h", ""),
    ],
)
def test_a_value_that_the_monitors_would_not_take_is_known_from_what_they_say_of_the_option(
    info: dict[str, Any], value: str, expected: str
) -> None:
    assert unfit(read_info({**INFO, **info}), value) == expected


@pytest.mark.parametrize(
    ("name", "flags", "runtime"),
    [
        ("osd_max_backfills", [], True),
        ("bdev_ioring", [], False),
        ("bdev_aio_max_queue_depth", ["no_mon_update"], False),
        ("bdev_async_discard_threads", ["runtime"], True),
        ("bluefs_alloc_size", [], False),
        ("bluefs_buffered_io", [], True),  # the doctor names it to be tried
        ("rocksdb_cache_size", [], False),
        ("osd_mclock_scheduler_anticipation_timeout", [], False),
        ("osd_mclock_scheduler_client_res", [], True),
    ],
)
def test_what_an_osd_reads_once_needs_a_restart_although_ceph_calls_it_changeable(
    name: str, flags: list[str], runtime: bool
) -> None:
    answer = {**INFO, "name": name, "type": "uint", "flags": flags}
    assert read_info(answer).runtime is runtime
    assert not read_info({**answer, "can_update_at_runtime": False}).runtime


@pytest.mark.parametrize("flag", ["create", "cluster_create"])
async def test_an_option_that_only_a_new_daemon_takes_is_refused(flag: str) -> None:
    """An OSD keeps it from mkfs: restarts would show the new value, and change nothing."""

    class Cluster:
        async def command(self, prefix: str, key: str) -> Any:
            assert prefix == "config help"
            flags = [flag] if key == "bluestore_min_alloc_size_ssd" else ["startup"]
            return {**INFO, "name": key, "type": "size", "flags": flags}

    async def save(entries: object) -> None: ...

    cluster: Any = Cluster()
    settings = ClusterSettings(cluster, Journal(save))
    await settings.check([CephOption("osd", "osd_num_cache_shards", "16")])
    said = r"osd bluestore_min_alloc_size_ssd = 16K: a daemon that exists keeps the value with"
    with pytest.raises(SettingRefused, match=said):
        await settings.check([CephOption("osd", "bluestore_min_alloc_size_ssd", "16K")])


@pytest.mark.parametrize(
    ("section", "daemons"),
    [
        ("osd", ["osd.0", "osd.1"]),
        ("osd.1", ["osd.1"]),
        ("mon", ["mon.a"]),
        ("mgr", ["mgr.x"]),
        ("mgr.x", ["mgr.x"]),
        ("global", ["osd.0", "osd.1", "mon.a", "mgr.x"]),
        ("osd.7", []),
    ],
)
def test_a_setting_is_read_back_from_every_daemon_that_its_section_means(
    section: str, daemons: list[str]
) -> None:
    option = CephOption(section, "debug_ms", "0")
    assert concerned(option, ["osd.0", "osd.1", "mon.a", "mgr.x"]) == daemons


MCLOCK = {"osd_op_queue": "mclock_scheduler", "osd_mclock_max_sequential_bandwidth_ssd": "1"}


def test_options_that_the_bandwidth_model_ignores_are_said() -> None:
    options = [CephOption("osd", "osd_scrub_cost", "50M"), CephOption("osd", "osd_max_scrubs", "5")]
    (only,) = warnings_for(options, MCLOCK)
    assert only.startswith("osd_scrub_cost = 50M has no effect")
    assert warnings_for(options, {**MCLOCK, "osd_op_queue": "wpq"}) == []
    assert warnings_for(options, {"osd_op_queue": "mclock_scheduler"}) == [], "16.2"


def test_a_sleep_of_zero_is_what_mclock_has_anyway() -> None:
    said = [
        warnings_for([CephOption("osd", "osd_scrub_sleep", v)], MCLOCK) for v in ("0", "0.0", "0.1")
    ]
    assert [len(warnings) for warnings in said] == [0, 0, 1]


def test_backfill_limits_need_the_override_under_mclock() -> None:
    options = [CephOption("osd", "osd_max_backfills", "1000")]
    assert len(warnings_for(options, MCLOCK)) == 1
    override = {"osd_mclock_override_recovery_settings": "true"}
    assert warnings_for(options, MCLOCK | override) == []


def test_shares_of_classes_need_the_custom_profile_under_mclock() -> None:
    options = [CephOption("osd", "osd_mclock_scheduler_client_res", "0.3")]
    (only,) = warnings_for(options, MCLOCK | {"osd_mclock_profile": "balanced"})
    assert only.startswith("osd_mclock_scheduler_client_res = 0.3 has no effect while osd_mclock_")
    assert warnings_for(options, MCLOCK | {"osd_mclock_profile": "custom"}) == []


@pytest.mark.parametrize(
    ("queue", "scheduler"),
    [
        ({}, "mclock_scheduler"),  # 16.2, which prints nothing
        ({"mClockClients": {"clients": ""}, "queue_sizes": {"immediate": 0}}, "mclock_scheduler"),
        ({"high_queues": [], "queues": []}, "wpq"),
        ("nonsense", "unknown"),
    ],
)
def test_the_scheduler_in_force_is_told_by_the_queue_dump_of_every_release(
    queue: Any, scheduler: str
) -> None:
    dump = {"OSD:ShardedOpWQ:0": queue, "OSD:ShardedOpWQ:1": queue}
    assert scheduler_of(dump) == scheduler


def test_the_scheduler_is_set_before_what_it_would_reset() -> None:
    wanted = device_queues.queue_settings(Device("bfq", 64, None))
    assert list(wanted.items()) == [("scheduler", "bfq"), ("nr_requests", "64")]
    assert in_force("none [bfq] kyber") == "bfq"


def test_a_profile_is_set_before_its_shares_and_so_undone_after_them() -> None:
    wanted = [
        CephOption("osd", "osd_mclock_scheduler_client_lim", "0.3"),
        CephOption("osd", "osd_mclock_profile", "custom"),
        CephOption("osd", "osd_max_scrubs", "2"),
    ]
    assert profile_first(wanted) == [wanted[1], wanted[0], wanted[2]]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"osd_max_backfills": "4"}, []),  # another spelling of it would do too
        ({"osd_max_backfills": "9"}, ["was set to 9 by someone else during the run"]),
        ({}, ["was removed during the run, which had set it to 4"]),
    ],
)
async def test_an_option_that_was_set_or_removed_during_the_run_is_said(
    now: dict[str, str], said: list[str]
) -> None:
    class Stored:
        options: ClassVar[dict[str, str]] = {"osd_max_backfills": "2 x"}

        async def command(self, prefix: str, **arguments: Any) -> Any:
            if prefix == "config dump":
                return [{"section": "osd", "name": n, "value": v} for n, v in self.options.items()]
            if prefix == "config help":
                return {"name": arguments["key"], "type": "uint", "can_update_at_runtime": True}
            return None

    async def save(entries: object) -> None: ...

    cluster: Any = Stored()
    journal = Journal(save)
    settings = ClusterSettings(cluster, journal)
    option = CephOption("osd", "osd_max_backfills", "4")
    await settings.check([])
    with pytest.raises(SettingRefused, match="osd_max_backfills = four: expected"):
        await settings.check([replace(option, value="four")])
    await settings.check([option])
    await settings._set(option, "2 x")
    assert journal.commands() == ["ceph config set osd osd_max_backfills '2 x'"], "for a shell"
    cluster.options = now
    found = await settings.changed_by_others(journal.entries)
    starts = [f"osd osd_max_backfills {text}" for text in said]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts


@pytest.mark.parametrize(
    ("in_daemon", "said"),
    [
        ({"osd.0": "4", "osd.1": "2"}, []),
        ({"osd.0": "4.0", "osd.1": "4"}, ["osd.1 osd_max_backfills is 4 at the end, the run had"]),
        ({"osd.1": "2"}, []),
        ({"osd.0": "1", "osd.1": "2"}, ["osd.0 osd_max_backfills is 1 at the end, the run had"]),
    ],
)
async def test_an_option_that_an_osd_does_not_have_any_more_is_said(
    in_daemon: dict[str, str], said: list[str]
) -> None:
    """`ceph tell osd.0 config set` leaves no trace in the monitors' database."""
    name = "osd_max_backfills"

    class Cluster:
        async def up_osds(self) -> list[int]:
            return [0, 1]

        async def once(self, prefix: str, target: str) -> Any:
            assert prefix == "config show"
            if target not in in_daemon:
                raise ClusterUnreachable("it hangs")
            return {name: in_daemon[target], "fsid": "x"}

        async def command(self, prefix: str, **arguments: Any) -> Any:
            if prefix == "config help":
                return {"name": arguments["key"], "type": "float", "can_update_at_runtime": True}
            if prefix == "config dump":
                found = {"osd": "4", "osd.1": "2"}
                return [{"section": s, "name": name, "value": v} for s, v in found.items()]
            return None

    async def save(entries: object) -> None: ...

    journal, cluster = Journal(save), Cluster()
    settings = ClusterSettings(cluster, journal)  # type: ignore[arg-type]
    for option in (CephOption("osd", name, "4"), CephOption("osd.1", name, "2")):
        await settings._is_known(option)
        await settings._set(option, None)
    assert await settings.changed_by_others(journal.entries) == []
    found = await settings.overridden(journal.entries)
    assert [line[: len(start)] for line, start in zip(found, said, strict=True)] == said
