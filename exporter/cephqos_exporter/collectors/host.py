"""host: the CPU time of a whole host, of all users, its pressure (PSI), and its network."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Self

from cephqos_base.series import HostSeries
from cephqos_exporter import procfs
from cephqos_exporter.collectors import links
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host
from cephqos_exporter.families import Family, counter, single
from cephqos_exporter.labels import LabelText, render_labels

_NO_LABELS: Final = LabelText("")
_LINKS_SECONDS: Final = 30.0  # between looks for interfaces and their settings


class HostCollector(
    DaemonCollector[None],
    name="host",
    help="CPU time of the whole host, its pressure, its network.",
):
    """/proc/stat, /proc/pressure and the network, once per scrape."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        host: Host | None = None,
        clock: Callable[[], float] = monotonic,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        host = host or Host()
        self._proc, self._sys = host.proc, host.sys
        self._clock = clock
        self._links: Sequence[str] = ()
        self._link_settings: Sequence[Family] = ()
        self._links_read: float | None = None

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(inputs.settings, host=inputs.host)

    def needed(self, daemon: Daemon, state: None) -> Sequence[Command]:
        return ()

    def first_seen(self, view: DaemonView) -> None:
        return None

    def families(self, view: DaemonView, state: None) -> Iterable[Family]:
        return ()

    def finish(self) -> Iterable[Family]:
        families = []
        with suppress(FileNotFoundError):
            families += _cpus(procfs.read_all(f"{self._proc}/stat"))
        pressure = counter(
            HostSeries.PRESSURE_SECONDS,
            "Time in which at least one thread of the host waited for a resource (PSI). Absent "
            "where the kernel does not count it.",
        )
        for resource in procfs.PRESSURE_RESOURCES:
            with suppress(OSError, ValueError):  # EOPNOTSUPP: compiled in and switched off
                seconds = procfs.parse_pressure(
                    procfs.read_once(f"{self._proc}/pressure/{resource}")
                )
                pressure.add(render_labels({"resource": resource}), seconds)
        if pressure.samples:
            families.append(pressure)
        return [*families, *_memory(f"{self._proc}/vmstat"), *self._network()]

    def _network(self) -> Iterable[Family]:
        now = self._clock()
        if self._links_read is None or now >= self._links_read + _LINKS_SECONDS:
            self._links_read = now
            self._links = links.interfaces(self._sys)
            self._link_settings = links.setting_families(self._sys, self._links)
        yield from self._link_settings
        yield from links.traffic_families(self._proc, self._links)
        yield from links.tcp_families(self._proc)


def _memory(path: str) -> Iterable[Family]:
    """Of the whole host, as the counts of a container go with it."""
    with suppress(OSError, ValueError):
        counts = dict(line.split() for line in procfs.read_all(path).splitlines())
        if killed := counts.get(b"oom_kill"):
            yield single(
                HostSeries.OOM_KILLS,
                "counter",
                "Processes of the host that the kernel killed because memory ran out, of the "
                "host or of a container.",
                _NO_LABELS,
                int(killed),
            )
        swapped = counter(
            HostSeries.SWAPPED_BYTES,
            "Memory that the host moved to its swap (direction out), and back (in) as a program "
            "needed it and waited.",
        )
        for direction in (b"in", b"out"):
            if pages := counts.get(b"pswp" + direction):
                labels = render_labels({"direction": direction.decode()})
                swapped.add(labels, int(pages) * procfs.PAGE_SIZE)
        yield swapped


def _cpus(raw: bytes) -> list[Family]:
    """The first line has the sum over all CPUs; each has a line of its own below."""
    if not raw.startswith(b"cpu "):
        return []
    fields = [int(field) for field in raw[: raw.index(b"\n")].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    seconds = counter(
        HostSeries.CPU_SECONDS,
        "CPU time of the host, by mode: used, by any program or the kernel; steal, taken by other "
        "virtual machines.",
    )
    used = user + nice + system + irq + softirq  # that of guests is in that of users
    seconds.add(render_labels({"mode": "used"}), used / procfs.CLOCK_TICKS)
    seconds.add(render_labels({"mode": "steal"}), steal / procfs.CLOCK_TICKS)
    online = single(HostSeries.CPUS, "gauge", "CPUs online.", _NO_LABELS, raw.count(b"\ncpu"))
    return [online, seconds]
