"""Cases of limits of containers, and of hosts whose CPUs are taken by other programs."""

from collections.abc import Sequence
from dataclasses import replace

from cephqos_base.recorded import PerHost, PerOsd

from .across import REPLICA, SLOW_1, WAITS, WELL, slow_link, three
from .cases import RuleCase, firing, silent
from .qos import (
    FULL_OF_REPLICAS,
    PROVEN,
    SHORT,
    SIZE3,
    SLOW,
    STALLED,
    VIOLATED,
    WIDE,
    osd,
    violated,
)
from .series import BUSY, CLUSTER, IDLE, STEP, Series, State, flat, merged, osds

TAKEN = "CephQosHostCpuTaken"
_HOST = {"job": "cephqos", "instance": "host1"}
_FAILING = f'{PerOsd.CONDITION}{{cluster="{CLUSTER}", condition="device_failing"}}'
_NETWORK = f'count(osd_class:cephqos_cause{{cluster="{CLUSTER}", cause="network"}})'
_OSD0 = {**_HOST, "cluster": CLUSTER, "ceph_daemon": "osd.0"}


def _grows(name: str, rate: float, **labels: str) -> Series:
    return flat(name, f"0+{rate * STEP:g}x160", **labels)


def _limited_cpu(throttled: float, cpus: float = 2, osd: int = 0) -> Series:
    """An OSD whose CPU limit holds it back in a part of ten periods per second."""
    name, own = "cephqos_cgroup_cpu", {**_OSD0, "ceph_daemon": f"osd.{osd}"}
    return merged(
        flat(f"{name}_limit_cpus", cpus, **own),
        _grows(f"{name}_periods_total", 10, **own),
        _grows(f"{name}_throttled_periods_total", 10 * throttled, **own),
    )


def _short_of_memory(seconds: float, osd: int = 0, gap: tuple[int, int] | None = None) -> Series:
    """`gap`: after how many samples how many are missing."""
    name = "cephqos_cgroup_pressure_seconds_total"
    own = {**_OSD0, "ceph_daemon": f"osd.{osd}"}
    pressure = _grows(name, seconds, resource="memory", **own)
    if gap is not None:
        until, missing = gap
        step = seconds * STEP
        after = step * (until + missing)
        values = f"0+{step:g}x{until - 1} _x{missing} {after:g}+{step:g}x60"
        pressure = flat(name, values, resource="memory", **own)
    return merged(flat("cephqos_cgroup_memory_limit_bytes", 4 << 30, **own), pressure)


def _swaps(mib: float) -> Series:
    """A host that brings so much back from its swap each second, and moves as much there."""
    name = "cephqos_host_swapped_bytes_total"
    return merged(*(_grows(name, mib * 2**20, direction=it, **_HOST) for it in ("in", "out")))


def _stopped(*samples: int) -> Series:
    """Whether the process is stopped from minute 8 on, again and again: at each scrape."""
    values = " ".join(str(it) for it in samples)
    return flat(
        "cephqos_daemon_stopped", f"0x31 {' '.join([values] * (80 // len(samples)))}", **_OSD0
    )


def _of_no_limit(series: Series) -> Series:
    return {name: values for name, values in series.items() if "memory_limit" not in name}


def _limited_io(limit: float, done: float) -> Series:
    name, place = "cephqos_cgroup_io", {"device": "sda", "op": "write", **_OSD0}
    limited = flat(f"{name}_limit_ops_per_second", limit, **place)
    return merged(limited, _grows(f"{name}_ops_total", done, **place))


def _little_cpu(osd: int) -> Series:
    """In place of the CPU that each OSD of these cases uses: a tenth of one."""
    own = {**_HOST, "cluster": CLUSTER, "ceph_daemon": f"osd.{osd}", "mode": "user"}
    return _grows("cephqos_daemon_cpu_seconds_total", 0.1, **own)


def _host(cpus: int, used: float, steal: float = 0, instance: str = "host1") -> Series:
    """Each OSD of these cases uses one CPU."""
    name, place = "cephqos_host_cpu_seconds_total", {**_HOST, "instance": instance}
    return merged(
        flat("cephqos_host_cpus", cpus, **place),
        _grows(name, used, mode="used", **place),
        _grows(name, steal, mode="steal", **place),
    )


def _three(state: State, instance: str = "host1", minutes: float = 20) -> Sequence[Series]:
    timeline = [(5, IDLE), (minutes, state), (10, IDLE)]
    return [one.series() for one in osds(3, timeline, instance=instance)]


# Full of replica writes, as OSDs look whose threads hardly get a CPU.
_STARVED = replace(SIZE3, cpu_waiting=12)
# Clients that run on the OSDs' host take most of its CPUs. The threads of an OSD that is full of
# replica writes wait now and then: less than a thread at a time, and hardly longer than they run.
_BESIDE_CLIENTS = replace(SIZE3, cpu_waiting=0.9)
_GETS_ITS_OWN = replace(BUSY, client=1200, cpu_waiting=12)

# It does far less than before, its threads wait for a CPU, and no other OSD waits for it.
_STARVES_ALONE = replace(SHORT, client=300, cpu_waiting=8)
_WAIT_TOO = replace(BUSY, client=1200, cpu_waiting=2.5)

# The memory that it waits for makes replica writes slow, three times as slow as elsewhere.
_PAGES = replace(BUSY, client=100, replica_writes=60, replica_latency=0.02, write_latency=0.1)


def _taken(instance: str = "host1") -> dict[str, str]:
    place = {"cluster": CLUSTER, "instance": instance}
    return {**place, "severity": "critical", "cause": "cpu"}


def _taken_case(name: str, host: Series, by: str, state: State = _STARVED) -> RuleCase:
    return RuleCase(
        name=name,
        alert=TAKEN,
        series=merged(*_three(state), host),
        moments=(silent(10), firing(12, _taken()), firing(16, _taken()), silent(33))
        if by
        else (silent(16),),
        values=[(16, f'count(instance:cephqos_cpus_taken:rate{{instance="host1",by="{by}"}})', 1)]
        * bool(by),
    )


def _only(ids: Sequence[int], instance: str) -> Series:
    """Starved OSDs as one exporter shows them."""
    every = _three(_STARVED, instance)
    return merged(*(every[osd] for osd in ids), _host(8, 7.9, instance=instance))


_ONE, _OTHER = "host1:10130", "host1:10131"
_TOLD = f'count(ALERTS{{alertname="{TAKEN}", alertstate="firing"}})'
_OTHERS_TAKE = f'round(10 * max({PerHost.CPUS_TAKEN}{{instance="{_OTHER}"}}))'
_TWO_EXPORTERS = [
    RuleCase(
        name="two exporters that see all OSDs of a host tell once that its CPUs are taken",
        alert=TAKEN,
        series=merged(_only((0, 1, 2), _ONE), _only((0, 1, 2), _OTHER)),
        moments=(silent(10),),
        values=((16, _TOLD, 1), (16, _OTHERS_TAKE, 49)),
    ),
    RuleCase(
        name="two exporters that share the OSDs of a host tell once that its CPUs are taken",
        alert=TAKEN,
        series=merged(_only((0, 2), _ONE), _only((1,), _OTHER)),
        moments=(silent(10), firing(16, _taken(_ONE)), silent(33)),
        values=((16, _OTHERS_TAKE, 49),),
    ),
]


CASES = [
    RuleCase(
        name="a CPU limit that holds an OSD back is critical with cause cpu, by the limit",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _limited_cpu(0.6)),
        moments=(silent(7), firing(23, violated("critical", "cpu", by="cpu_limit"))),
    ),
    RuleCase(
        name="commits that are slow because a CPU limit stops their thread have no slow device",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, replace(SLOW, device_latency=0.001))), _limited_cpu(0.6)
        ),
        moments=(firing(23, violated("critical", "cpu", by="cpu_limit")),),
    ),
    RuleCase(
        name="a store that stands still because a CPU limit stops its threads has no failed device",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, STALLED)), _limited_cpu(0.6)),
        moments=(firing(23, violated("critical", "cpu", by="cpu_limit")),),
    ),
    RuleCase(
        name="a store that stands still for want of memory has no failed device while figures lack",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, STALLED)), _short_of_memory(0.5, gap=(92, 4))),
        moments=(firing(23, violated("critical", "cpu", by="memory_limit")),),
        values=((24, f"count({_FAILING}) or vector(0)", 0),),
    ),
    RuleCase(
        name="late heartbeats of an OSD that its CPU limit stops are no slow network",
        alert=VIOLATED,
        series=merged(
            *(replace(osd((10, WELL), (20, WELL if i else WAITS)), id=i) for i in range(3)),
            slow_link(0, worst="osd.2"),
            _limited_cpu(0.6, osd=2),
        ),
        moments=(silent(14),),
        values=((18, f"{_NETWORK} or vector(0)", 0),),
    ),
    RuleCase(
        name="a CPU limit that is hardly ever reached explains nothing",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _limited_cpu(0.05)),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="a CPU limit that holds back an OSD without demand is no finding",
        alert=VIOLATED,
        series=merged(osd((28, IDLE)), _limited_cpu(0.6)),
        moments=(silent(23),),
    ),
    RuleCase(
        name="an OSD that waits for memory under a memory limit is critical",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _short_of_memory(0.5)),
        moments=(firing(23, violated("critical", "cpu", by="memory_limit")),),
    ),
    RuleCase(
        name="an OSD that waits for memory without a limit is critical, by its host's memory",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _of_no_limit(_short_of_memory(0.5))),
        moments=(firing(23, violated("critical", "cpu", by="host_memory")),),
    ),
    RuleCase(
        name="an OSD on a host that swaps, with a kernel that counts no pressure, lacks memory",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _swaps(20)),
        moments=(firing(23, violated("critical", "cpu", by="host_memory")),),
    ),
    RuleCase(
        name="a host that swaps, and a process that does not wait for it, explain nothing",
        alert=VIOLATED,
        series=merged(
            osd((8, PROVEN), (20, SHORT)), _swaps(20), _of_no_limit(_short_of_memory(0.05))
        ),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="a host that brings a little back from swap explains nothing",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _swaps(1)),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="an OSD whose memory limit makes replica writes three times as slow is waited for",
        alert=REPLICA,
        series=merged(three((10, WELL), culprit=_PAGES, others=WAITS), _short_of_memory(0.5, 1)),
        moments=(silent(9), firing(22, SLOW_1)),
    ),
    RuleCase(
        name="an OSD whose replica writes are three times as slow without a limit is not",
        alert=REPLICA,
        series=merged(three((10, WELL), culprit=_PAGES, others=WAITS), _short_of_memory(0.05, 1)),
        moments=(silent(22),),
    ),
    RuleCase(
        name="a little pressure of memory explains nothing",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _short_of_memory(0.05)),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="an OSD that is stopped half of the time has cause stopped, however long threads wait",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, _STARVES_ALONE)), _stopped(1, 0)),
        moments=(silent(7), firing(23, violated("critical", "stopped"))),
        only=True,
    ),
    RuleCase(
        name="a store that stands still because its process is stopped has no failed device",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, STALLED)), _stopped(1)),
        moments=(firing(23, violated("critical", "stopped")),),
        values=((24, f"count({_FAILING}) or vector(0)", 0),),
    ),
    RuleCase(
        name="a process that is found stopped once in three minutes explains nothing",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SHORT)), _stopped(1, *[0] * 11)),
        moments=(firing(23, violated("warning", "unknown")),),
    ),
    RuleCase(
        name="one of OSDs that all wait for a CPU, and does less than before, is a warning",
        alert=VIOLATED,
        series=three(
            (10, PROVEN), culprit=replace(_STARVES_ALONE, cpu_waiting=4), others=_WAIT_TOO
        ),
        moments=(
            silent(14),
            firing(23, {**violated("warning", "cpu", by="all_osds"), "ceph_daemon": "osd.1"}),
        ),
        only=True,
    ),
    RuleCase(
        name="one that waits for a CPU far longer than its peers, and does less, is critical",
        alert=VIOLATED,
        series=three((10, PROVEN), culprit=_STARVES_ALONE, others=_WAIT_TOO),
        moments=(firing(23, {**violated("critical", "cpu"), "ceph_daemon": "osd.1"}),),
    ),
    RuleCase(
        name="a device that is slow because of an I/O limit is critical, by the limit",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SLOW)), _limited_io(212, 211)),
        moments=(firing(23, violated("critical", "device", by="io_limit")),),
    ),
    RuleCase(
        name="a device that is slow far below its I/O limit is slow itself",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (20, SLOW)), _limited_io(10_000, 211)),
        moments=(firing(23, violated("critical", "device")),),
    ),
    RuleCase(
        name="an OSD at its I/O limit that does what it always did is critical, by the limit",
        alert=VIOLATED,
        series=merged(osd((28, SHORT)), _limited_io(1050, 1050)),
        moments=(firing(23, violated("critical", "device", by="io_limit")),),
    ),
    _taken_case(
        "other programs that take a host's CPUs are told once", _host(8, 7.9), "other_programs"
    ),
    _taken_case(
        "other virtual machines that take a host's CPUs are told once",
        _host(8, 4.5, 3.2),
        "other_vms",
    ),
    _taken_case(
        "OSDs that use up their host themselves have no other program to blame", _host(4, 3.9), ""
    ),
    _taken_case("a host with room has no program to blame", _host(16, 12), ""),
    _taken_case("threads that hardly wait are not short of CPU", _host(8, 7.9), "", SIZE3),
    _taken_case(
        "clients that run on a full host take nothing from OSDs whose threads get their CPU",
        _host(8, 7.9),
        "",
        _BESIDE_CLIENTS,
    ),
    _taken_case(
        "idle OSDs on a full host wait longer than they run, and lack nothing",
        merged(*(_little_cpu(osd) for osd in range(3)), _host(8, 7.9)),
        "",
        _BESIDE_CLIENTS,
    ),
    _taken_case(
        "clients that get what is reserved do not suffer, however long threads wait",
        _host(8, 7.9),
        "",
        _GETS_ITS_OWN,
    ),
    _taken_case(
        "other virtual machines take nothing from OSDs whose threads get their CPU",
        _host(8, 4.5, 3.2),
        "",
        _BESIDE_CLIENTS,
    ),
    _taken_case(
        "other virtual machines on a host with idle CPUs take nothing", _host(8, 3.5, 3.2), ""
    ),
    *_TWO_EXPORTERS,
    RuleCase(
        name="replica writes are not blamed where other programs take the CPUs",
        alert=WIDE,
        series=merged(*_three(_STARVED, minutes=34), _host(8, 7.9)),
        moments=(silent(13), silent(38.5)),
    ),
    RuleCase(
        name="replica writes are blamed where other programs leave room",
        alert=WIDE,
        series=merged(osd((5, IDLE), (34, SIZE3)), _host(8, 7.9)),
        moments=(firing(38.5, FULL_OF_REPLICAS),),
    ),
]
