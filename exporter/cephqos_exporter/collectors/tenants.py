"""Which images, buckets and clients wait on an OSD, and which of them it works for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cephqos_exporter.collectors.base import SamplingCollector
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family
from cephqos_exporter.labels import Labels
from cephqos_exporter.qos.tenants import NAMED_TENANTS, TenantMeter

_SECONDS = (
    "Time of operations by tenant, estimated from samples. state: waiting (in the queue, blocked, "
    "or for other OSDs), working (the OSD executes or commits it, replica writes included). kind: "
    "image (tenant is its id), bucket (its marker), cephfs and client (the client's id), other. "
    f"The {NAMED_TENANTS} largest have series, which begin at 0. A queued operation counts for "
    "what its client did last. Sub-operations of erasure-coded pools are left out. Absent until "
    "operations were sampled."
)
_SQUARES = (
    "How sure shares of cephqos_tenants_seconds_total are: the seconds of each tenant in each "
    "sample, squared and added. Shares of S seconds are as sure as those of S * S / this many "
    "independent samples. Absent until operations were sampled."
)


@dataclass(slots=True)
class _TenantsOsd:
    labels: Labels
    meter: TenantMeter = field(default_factory=TenantMeter)
    shown: Sequence[Family] = ()  # as of the last sample


class TenantsCollector(
    SamplingCollector[_TenantsOsd],
    name="tenants",
    help="Images, buckets and clients that wait on an OSD, and that it works for.",
):
    """Tenants of an OSD."""

    def needed(self, daemon: Daemon, state: _TenantsOsd | None) -> Sequence[Command]:
        return self.samples.commands(daemon)

    def first_seen(self, view: DaemonView) -> _TenantsOsd:
        return _TenantsOsd(Labels(view.labels))

    def families(self, view: DaemonView, state: _TenantsOsd) -> Iterable[Family]:
        meter = state.meter
        sample = self.samples.of(view)
        if sample is not None and sample.operations:
            meter.sample(sample.operations, view.time, view.not_understood)
            state.shown = tuple(_families(meter, state.labels))
        return state.shown


def _families(meter: TenantMeter, labels: Labels) -> Iterable[Family]:
    family = Family("cephqos_tenants_seconds_total", "counter", _SECONDS)
    for (who, of), seconds in meter.seconds.items():
        named = ("pool_id", who.pool, "tenant", who.name) if who.name else ()
        family.add(labels.of("kind", who.kind, *named, "state", of), seconds)
    yield family
    family = Family("cephqos_tenants_squared_seconds_total", "counter", _SQUARES)
    for of, squares in meter.squares.items():
        family.add(labels.of("state", of), squares)
    yield family
