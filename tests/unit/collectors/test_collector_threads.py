"""The threads collector, on written host trees."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.replay.host_tree import CLASSIC_THREADS, FakeThread, HostTree

from cephqos_exporter import sampler
from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.daemon import ReplyMissing
from cephqos_exporter.daemon_errors import Malformed
from cephqos_exporter.procfs import Descriptors, read_once
from cephqos_exporter.sampler import OSD_GROUPS, ThreadSamples, group_of

from .host_views import PID, cpu, samples, view


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("tp_osd_tp", "tp_osd_tp"),
        ("msgr-worker-2", "msgr-worker"),
        ("rocksdb:low1", "rocksdb:low"),
        ("reactor-14", "reactor"),
        ("crimson-osd", "reactor"),
        ("alien-store-tp", "alien-store-tp"),
        ("safe_timer", "other"),
        ("12", "other"),
    ],
)
def test_threads_are_grouped_by_their_names_without_numbers(name: str, group: str) -> None:
    assert group_of(name, OSD_GROUPS) == group


def test_every_group_is_named_on_request() -> None:
    assert group_of("safe_timer", None) == "safe_timer"
    assert group_of("42", None) == "other"


def test_times_are_summed_over_a_group_and_shown_in_seconds(tree: HostTree) -> None:
    tree.process(
        PID,
        [
            FakeThread(name="ceph-osd", user=5, system=7, run_ns=120_000_000),
            FakeThread(name="tp_osd_tp", user=100, system=50, wait_ns=2_000_000_000, voluntary=10),
            FakeThread(name="tp_osd_tp", user=300, system=25, wait_ns=500_000_000, involuntary=4),
        ],
        resident_pages=1000,
        ended_ticks=(11, 2),
    )
    found = samples(ThreadsCollector().collect(view(tree.host)))
    assert found['cephqos_threads{group="tp_osd_tp"}'] == 2
    assert cpu(found, "tp_osd_tp") == (4.0, 0.75)
    assert cpu(found, "other") == (0.05, 0.07)
    assert found['cephqos_threads_wait_seconds_total{group="tp_osd_tp"}'] == 2.5
    switches = 'cephqos_threads_switches_total{group="tp_osd_tp",kind="%s"}'
    assert found[switches % "voluntary"] == 10
    assert found[switches % "involuntary"] == 4
    assert found["cephqos_daemon_resident_bytes{}"] == 1000 * 4096
    assert found["cephqos_daemon_stopped{}"] == 0
    assert found['cephqos_daemon_cpu_seconds_total{mode="user"}'] == 4.16


def test_a_group_does_not_fall_when_one_of_its_threads_ends(tree: HostTree) -> None:
    main = FakeThread(name="ceph-osd")
    one = FakeThread(name="tp_osd_tp", user=100, system=10, run_ns=1)
    two = FakeThread(name="tp_osd_tp", user=900, system=90, run_ns=2, voluntary=70)
    collector = ThreadsCollector()
    tree.process(PID, [main, one, two])
    before = samples(collector.collect(view(tree.host)))
    tree.process(PID, [main, one])
    after = samples(collector.collect(view(tree.host, 1015)))
    assert before['cephqos_threads{group="tp_osd_tp"}'] == 2
    assert after['cephqos_threads{group="tp_osd_tp"}'] == 1
    assert cpu(after, "tp_osd_tp") == cpu(before, "tp_osd_tp") == (10.0, 1.0)
    three = FakeThread(name="tp_osd_tp", user=40, system=0, run_ns=3, start=2000)
    tree.process(PID, [main, one, three])
    assert cpu(samples(collector.collect(view(tree.host, 1030))), "tp_osd_tp") == (10.4, 1.0)


def test_a_thread_number_given_to_a_new_thread_counts_from_nothing(tree: HostTree) -> None:
    main = FakeThread(name="ceph-osd")
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=Descriptors(0)))
    tree.process(PID, [main, FakeThread(name="tp_osd_tp", user=500, run_ns=50)])
    list(collector.collect(view(tree.host)))
    tree.process(PID, [main, FakeThread(name="log", user=30, run_ns=3, start=7777)])
    found = samples(collector.collect(view(tree.host, 1015)))
    assert cpu(found, "tp_osd_tp") == (5.0, 0.0)
    assert cpu(found, "log") == (0.3, 0.0)
    assert found['cephqos_threads{group="tp_osd_tp"}'] == 0
    assert found['cephqos_threads{group="log"}'] == 1


def test_a_thread_that_gets_its_name_late_leaves_what_it_did_behind(tree: HostTree) -> None:
    main = FakeThread(name="ceph-osd")
    collector = ThreadsCollector()
    tree.process(PID, [main, FakeThread(name="ceph-osd", user=10, run_ns=1)])
    list(collector.collect(view(tree.host)))
    tree.process(PID, [main, FakeThread(name="bstore_kv_sync", user=25, run_ns=2)])
    found = samples(collector.collect(view(tree.host, 1015)))
    assert cpu(found, "other") == (0.1, 0.0)
    assert cpu(found, "bstore_kv_sync") == (0.15, 0.0)
    assert found['cephqos_threads{group="other"}'] == 1
    assert found['cephqos_threads{group="bstore_kv_sync"}'] == 1


def test_the_busiest_thread_is_chosen_anew_in_each_interval(tree: HostTree) -> None:
    def write(first: int, second: int) -> None:
        tree.process(
            PID,
            [
                FakeThread(name="ceph-osd"),
                FakeThread(name="tp_osd_tp", run_ns=first * 10**9),
                FakeThread(name="tp_osd_tp", run_ns=second * 10**9),
            ],
        )

    collector = ThreadsCollector()
    busiest = 'cephqos_threads_busiest_cpu_seconds_total{group="tp_osd_tp"}'
    write(100, 50)
    assert samples(collector.collect(view(tree.host, 1000)))[busiest] == 0
    write(109, 51)  # the first: 9 s
    assert samples(collector.collect(view(tree.host, 1010)))[busiest] == 9
    write(110, 58)  # the second: 7 s
    assert samples(collector.collect(view(tree.host, 1020)))[busiest] == 16
    assert samples(collector.collect(view(tree.host, 1030)))[busiest] == 16


def test_a_second_look_in_the_same_scrape_changes_nothing(tree: HostTree) -> None:
    tree.classic_osd(PID, 3)
    shared = ThreadSamples()
    shared.of(view(tree.host))
    tree.classic_osd(PID, 3, step=1)
    first = samples(ThreadsCollector(samples=shared).collect(view(tree.host)))
    later = samples(ThreadsCollector(samples=shared).collect(view(tree.host, 1001)))
    assert cpu(later, "tp_osd_tp")[0] == cpu(first, "tp_osd_tp")[0] + 5 * 0.4


def test_switches_are_read_at_intervals_and_only_of_threads_that_ran(tree: HostTree) -> None:
    collector = ThreadsCollector(samples=ThreadSamples(switches_interval=60))
    switches = 'cephqos_threads_switches_total{group="tp_osd_tp",kind="voluntary"}'
    tree.classic_osd(PID, 3)
    first = samples(collector.collect(view(tree.host, 1000)))[switches]
    tree.classic_osd(PID, 3, step=1)
    assert samples(collector.collect(view(tree.host, 1001)))[switches] == first
    assert samples(collector.collect(view(tree.host, 1070)))[switches] == first + 5 * 900


def test_without_schedstat_times_come_from_stat_and_waits_are_absent(tree: HostTree) -> None:
    def write(user: int) -> None:
        tree.process(
            PID,
            [
                FakeThread(name="ceph-osd", run_ns=0),
                FakeThread(name="tp_osd_tp", user=user, run_ns=0),
            ],
        )

    write(100)
    collector = ThreadsCollector()
    found = samples(collector.collect(view(tree.host)))
    assert cpu(found, "tp_osd_tp") == (1.0, 0.0)
    assert not [key for key in found if "wait_seconds" in key]
    write(250)
    found = samples(collector.collect(view(tree.host, 1002)))
    assert cpu(found, "tp_osd_tp") == (2.5, 0.0)
    assert found['cephqos_threads_busiest_cpu_seconds_total{group="tp_osd_tp"}'] == 1.5


def test_each_thread_of_a_classic_osd_is_counted(tree: HostTree) -> None:
    tree.classic_osd(PID, 3)
    found = samples(ThreadsCollector().collect(view(tree.host)))
    assert len(CLASSIC_THREADS) == 57
    assert sum(value for key, value in found.items() if key.startswith("cephqos_threads{")) == 57


def test_groups_and_pools_that_come_later_have_their_own_numbers(tree: HostTree) -> None:
    pools = {"dump_mempools": {"mempool": {"by_pool": {"osd": {"bytes": 7}}}}}
    threads = [
        FakeThread(name=name, user=number, system=2 * number, run_ns=number, wait_ns=3 * number)
        for number, name in enumerate(("ceph-osd", "log", "tp_osd_tp", "cfin", "msgr-worker-0"), 1)
    ]
    collector = ThreadsCollector()
    for number in range(1, 1 + len(threads)):
        tree.process(PID, threads[:number])
        found = samples(collector.collect(view(tree.host, 1000 + number)))
    assert "cephqos_daemon_mempool_bytes" not in "".join(found)
    found = samples(collector.collect(view(tree.host, 1010, replies=pools)))
    fresh = samples(ThreadsCollector().collect(view(tree.host, replies=pools)))
    assert found.keys() == fresh.keys()
    once = ("busiest", "switches")  # told from two readings, or read at intervals
    differing = {key for key in found if found[key] != fresh[key]}
    assert all(any(word in key for word in once) for key in differing)
    assert cpu(found, "cfin") == (0.04, 0.08)


def test_a_series_per_thread_on_request_only(tree: HostTree) -> None:
    tree.classic_osd(PID, 3)
    key = "cephqos_threads_thread_cpu_seconds_total"
    without = samples(ThreadsCollector().collect(view(tree.host)))
    assert not [name for name in without if name.startswith(key)]
    found = samples(ThreadsCollector(per_thread=True).collect(view(tree.host)))
    assert len([name for name in found if name.startswith(key)]) == 57
    worker = f'{key}{{group="msgr-worker",thread="msgr-worker-1",tid="{PID + 3}"}}'
    assert found[worker] == pytest.approx(1.56)


def test_memory_pools_show_from_their_first_byte_on(tree: HostTree) -> None:
    tree.classic_osd(PID, 3)

    def reply(**pools: int) -> dict[str, Any]:
        by_pool = {pool: {"items": 1, "bytes": size} for pool, size in pools.items()}
        return {"dump_mempools": {"mempool": {"by_pool": by_pool, "total": {"bytes": 9}}}}

    collector = ThreadsCollector()
    first = reply(bluestore_cache_data=4096, bluestore_fsck=0)
    found = samples(collector.collect(view(tree.host, replies=first)))
    pool = 'cephqos_daemon_mempool_bytes{pool="%s"}'
    assert found[pool % "bluestore_cache_data"] == 4096
    assert pool % "bluestore_fsck" not in found
    second = reply(bluestore_cache_data=0, bluestore_fsck=0)
    found = samples(collector.collect(view(tree.host, 1015, replies=second)))
    assert found[pool % "bluestore_cache_data"] == 0
    assert pool % "bluestore_fsck" not in found


@pytest.mark.parametrize("reply", [None, [], {}, {"mempool": {"by_pool": [1]}}, {"mempool": 3}])
def test_a_malformed_pool_reply_is_an_error(tree: HostTree, reply: object) -> None:
    tree.classic_osd(PID, 3)
    with pytest.raises(Malformed):
        list(ThreadsCollector().collect(view(tree.host, replies={"dump_mempools": reply})))


def test_only_the_wanted_kinds_are_sampled_and_asked(tree: HostTree) -> None:
    tree.process(PID, [FakeThread(name="ceph-mon"), FakeThread(name="ms_dispatch", user=4)])
    mon = view(tree.host, kind="mon")
    assert list(ThreadsCollector().collect(mon)) == []
    assert ThreadsCollector().commands(mon.daemon) == ()
    wanted = ThreadsCollector(kinds=("osd", "mon"))
    families = list(wanted.collect(mon))
    groups = {labels for _, labels, _ in families[0].samples}
    assert any('group="ms_dispatch"' in labels for labels in groups)
    assert wanted.commands(mon.daemon) == ()


def test_a_daemon_without_a_pid_or_with_a_dead_one_is_reported(tree: HostTree) -> None:
    collector = ThreadsCollector()
    with pytest.raises(ReplyMissing, match="unknown"):
        list(collector.collect(view(tree.host, pid=None)))
    with pytest.raises(ReplyMissing, match="gone"):
        list(collector.collect(view(tree.host, pid=99)))


@pytest.mark.parametrize(
    ("error", "reason"), [(ProcessLookupError(), "gone"), (PermissionError(), "permission")]
)
def test_a_process_that_ends_while_it_is_taken_up_leaves_nothing_open(
    tree: HostTree, monkeypatch: pytest.MonkeyPatch, error: OSError, reason: str
) -> None:
    def fail(*_: object) -> bytes:
        raise error

    tree.classic_osd(PID, 3)
    descriptors = Descriptors(1000)
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=descriptors))
    monkeypatch.setattr("os.pread", fail)
    with pytest.raises(ReplyMissing, match=reason):
        list(collector.collect(view(tree.host)))
    assert descriptors.used == 0


def test_the_last_descriptor_is_given_back(tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """`stat` got it, so that `schedstat` cannot be read; the next scrape tries again."""

    def fail(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    tree.classic_osd(PID, 3)
    descriptors = Descriptors(1000)
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=descriptors))
    with monkeypatch.context() as without:
        without.setattr("cephqos_exporter.sampler.read_once", fail)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                list(collector.collect(view(tree.host)))
        assert descriptors.used == 0
    assert list(collector.collect(view(tree.host)))


def test_threads_are_counted_although_descriptors_ran_out_while_they_were_listed(
    tree: HostTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, as the first time all that is known of the daemon is dropped. They were none then."""
    tree.classic_osd(PID, 3)
    threads = ThreadSamples(descriptors=Descriptors(0))
    sample = threads.open(tree.host.proc, PID)
    calls = iter(range(1000))

    def fail(path: str, size: int = 4096) -> bytes:
        if next(calls) == 20:
            raise OSError(errno.EMFILE, "Too many open files")
        return read_once(path, size)

    with monkeypatch.context() as without:
        without.setattr(sampler, "read_once", fail)
        with pytest.raises(OSError, match="Too many open files"):
            sample.update(1000.0)
    sample.update(1015.0)
    assert sum(group.threads for group in sample.groups.values()) == len(CLASSIC_THREADS)


def test_a_restarted_daemon_starts_anew_and_its_files_are_closed(tree: HostTree) -> None:
    descriptors = Descriptors(1000)
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=descriptors))
    tree.classic_osd(PID, 3, step=50)
    old = samples(collector.collect(view(tree.host)))
    used = descriptors.used
    assert used == 58
    tree.classic_osd(PID + 500, 3)
    new = samples(collector.collect(view(tree.host, 1015, pid=PID + 500)))
    assert cpu(new, "tp_osd_tp") < cpu(old, "tp_osd_tp")
    assert descriptors.used == used
    collector.forget(view(tree.host).daemon)  # the one before: its successor stays
    assert descriptors.used == used
    collector.forget(view(tree.host, pid=PID + 500).daemon)
    assert descriptors.used == 0


def test_a_process_number_given_to_another_process_is_noticed(tree: HostTree) -> None:
    collector = ThreadsCollector(samples=ThreadSamples(descriptors=Descriptors(0)))
    tree.process(PID, [FakeThread(name="ceph-osd", start=10, user=400)])
    list(collector.collect(view(tree.host)))
    tree.process(PID, [FakeThread(name="bash", start=99, user=1)])
    with pytest.raises(ReplyMissing, match="gone"):
        list(collector.collect(view(tree.host, 1015)))


def test_an_osd_that_got_its_predecessors_number_is_not_taken_for_gone(tree: HostTree) -> None:
    threads = ThreadSamples(descriptors=Descriptors(0))
    seen = view(tree.host)
    tree.process(PID, [FakeThread(name="ceph-osd", start=10)])
    before = replace(seen, daemon=replace(seen.daemon, start=10))
    assert threads.of(before).start == 10
    tree.process(PID, [FakeThread(name="ceph-osd", start=99)])
    after = replace(seen, daemon=replace(seen.daemon, start=99), time=1015.0)
    assert threads.of(after).start == 99
    with pytest.raises(ReplyMissing, match="gone"):
        threads.of(replace(before, time=1016.0))  # of a scrape that was under way
    assert threads.of(after).start == 99


class TestProcessesByName:
    def test_fio_processes_are_one_sum_that_survives_their_end(self, tree: HostTree) -> None:
        clock = iter(range(1000, 2000, 10))
        collector = ThreadsCollector(
            processes=("fio",),
            host=tree.host,
            clock=lambda: float(next(clock)),
            # A file that stays open outlives its removal; a process's /proc does not.
            samples=ThreadSamples(descriptors=Descriptors(0)),
        )
        tree.process(1, [FakeThread(name="init", user=5)])
        assert samples(collector.finish()) == {}
        tree.process(700, [FakeThread(name="fio", user=100)], resident_pages=10)
        tree.process(800, [FakeThread(name="fio", user=50), FakeThread(name="io_context_pool")])
        tree.process(900, [FakeThread(name="bash", user=9999)])
        found = samples(collector.finish())
        user = 'cephqos_threads_cpu_seconds_total{process="fio",group="fio",mode="user"}'
        assert found[user] == 1.5
        assert found['cephqos_threads{process="fio",group="fio"}'] == 2
        assert found['cephqos_daemon_resident_bytes{process="fio"}'] == 20_010 * 4096
        for file in sorted((tree.host.proc / "700").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (tree.host.proc / "700").rmdir()
        found = samples(collector.finish())
        assert found[user] == 1.5
        assert found['cephqos_threads{process="fio",group="fio"}'] == 1

    @pytest.mark.timeout(10)
    def test_the_arguments_of_processes_are_not_read(self, tree: HostTree) -> None:
        """Those of one that hangs held up all scrapes, if its name is of 15 bytes or more."""
        collector = ThreadsCollector(processes=("a-client-of-long-name",), host=tree.host)
        tree.process(700, [FakeThread(name="a-client-of-lon", user=100)])
        tree.process(800, [FakeThread(name="another-process")])
        for pid in (700, 800):
            arguments = tree.host.proc / str(pid) / "cmdline"
            arguments.unlink(missing_ok=True)
            os.mkfifo(arguments)
        found = samples(collector.finish())
        group = 'process="a-client-of-long-name",group="a-client-of-lon"'
        assert found[f'cephqos_threads_cpu_seconds_total{{{group},mode="user"}}'] == 1

    def test_nothing_is_looked_for_unless_asked(self, tree: HostTree) -> None:
        tree.process(700, [FakeThread(name="fio", user=100)])
        assert list(ThreadsCollector(host=tree.host).finish()) == []
