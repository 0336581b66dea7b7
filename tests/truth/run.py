"""One situation from a quiet cluster to its verdict."""

import asyncio
import contextlib
import random
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.stack.conftest import Received, Watched, Webhook
from tests.waiting import until

from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_base import marked
from cephqos_base.errors import CephqosError
from cephqos_base.series import QosSeries
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.stack import Stack, StackSpec
from cephqos_stack.staged.faults import LOW, capacity_option, prepare, unset
from cephqos_stack.staged.judge import SETTLED, Heard, Verdict, judge, osd_name, watch_failures
from cephqos_stack.staged.situation import FASTER, Situation
from cephqos_stack.staged.stage import Stage, StagedLab, clean
from cephqos_stack.staged.tenant import noisy_tenant

from . import fault_at
from .faults import FAULTS, LOADS
from .runbook import not_as_said, shown

_SATURATED: Final = 11.0  # seconds of load that show what an OSD can do
# More of it at most, where the load stays: a device's first seconds are its best.
_SUSTAINED: Final = 60.0
_FORGOTTEN: Final = 5.0  # seconds: longer than a rate looks back
_TOLD: Final = 6.0  # seconds in which Alertmanager tells of what fires at the end
_STEP: Final = 2  # seconds between the figures that are kept
# What the rules saw, for those who look into a verdict.
SEEN: Final = (
    "osd_class:cephqos_evidence:rank",
    "osd_class:cephqos_lasting_evidence:rank",
    "osd_class:cephqos_violated:bool",
    "osd_class:cephqos_demand:bool",
    "osd_class:cephqos_effective_reservation_ops",
    "osd_class:cephqos_attained_ops:rate",
    "osd:cephqos_delivered_ops:rate",
    "osd:cephqos_delivered_ops:max1d",
    "osd:cephqos_capacity_ops",
    "osd:cephqos_own_store:ratio",
    "osd:cephqos_replica_slowness:ratio",
    "osd:cephqos_condition:bool",
    "osd:cephqos_waited_for:count",
    "osd_at:cephqos_seconds:rate",
    "osd_at:cephqos_device_seconds:rate",
    "osd:cephqos_client_present:quantile25",
    "osd:cephqos_store_piling_up:bool",
    "osd:cephqos_cpus:rate",
    "osd:cephqos_cpu_denied:bool",
    "osd:cephqos_io_limit_reached:rate",
    "osd:cephqos_at_limit_with_room:ratio",
    "instance:cephqos_cpus_taken:rate",
    "cephqos_network_slow_peers",
    "instance_class:cephqos_ops:sum",
    "cluster_class:cephqos_target_violated:bool",
    "scrape_samples_post_metric_relabeling",
)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One run of one situation."""

    name: str
    seed: int
    digest: str
    healthy: bool
    verdict: Verdict
    seconds: float | None = None  # until the first alert that was expected
    stayed: float | None = None  # share of the time with the fault that it fired, once it had come
    watched: float = 0.0  # seconds in which whatever came was judged
    critical: bool = False  # a critical alert that should not have fired
    others: list[str] = field(default_factory=list)  # what should not have come
    heard: list[str] = field(default_factory=list)  # all that came
    note: str = ""
    seen: dict[str, dict[str, str]] = field(default_factory=dict)  # figures, to look into it
    runbook: dict[str, str] = field(default_factory=dict)  # what its queries showed

    def row(self) -> dict[str, Any]:
        return asdict(self)


@contextlib.asynccontextmanager
async def watching(
    lab: RunningLab, name: str, policy: Path | None = None
) -> AsyncIterator[Watched]:
    """Watchers that remember nothing of the situation before."""
    webhook = Webhook()
    options = (f"--qos.policy={policy}",) if policy else ()
    spec = StackSpec(
        name=name,
        webhook=webhook.url,
        exporter_options=options,
        time_scale=1 / FASTER,
        goes_first=True,
    )
    try:
        async with Stack(lab, spec) as stack:
            yield Watched(lab, stack, webhook)
    finally:
        await asyncio.to_thread(webhook.close)


async def run(
    lab: RunningLab, situation: Situation, seed: int, keep: Path | None = None
) -> Judgement:
    """A verdict; what could not be staged is `not run`, with the reason. All series and the
    daemons' logs go to `keep`."""
    try:
        return await _run(lab, situation, seed, keep)
    except (AssertionError, CephqosError, OSError, TimeoutError) as exc:
        return Judgement(
            name=situation.name,
            seed=seed,
            digest=situation.digest,
            healthy=situation.healthy,
            verdict="not run",
            note=" ".join(str(exc).split())[:200] or type(exc).__name__,
        )


async def _run(lab: RunningLab, situation: Situation, seed: int, keep: Path | None) -> Judgement:
    turn = seed % situation.cluster.osds
    pool = await _pool(lab, situation)
    kinds = {fault.kind for fault in situation.faults}
    if not situation.healthy or "restart-all" in kinds:
        # After a minute it would move placement groups in the midst of a fault. Restarts wait for
        # them, and recovery's share of a low capacity moves six objects per second.
        await lab.exec(["ceph", "balancer", "off"])
    await _quiet_cluster(lab)
    policy = await _policy(lab, situation, pool)
    async with watching(lab, f"truth-{time.monotonic_ns()}", policy) as on:
        stage = Stage(on, situation, turn, pool)
        try:
            if situation.history:
                await prepare(stage, await delivered_at_its_end(stage, on))
            else:
                await prepare(stage)
            await asyncio.sleep(_FORGOTTEN)
            begun = time.monotonic()
            heard = await play(stage, on, random.Random(seed))  # noqa: S311 - a jitter, no secret
            watched = time.monotonic() - begun
            stayed = await _stayed(stage, on, heard)
            showed = await shown(on, heard)
            seen = await _courses(on, round(time.monotonic() - begun))
        finally:
            if keep:
                await asyncio.to_thread(_keep, on, keep / f"{situation.name}-{seed}")
            await stage.close()
            await unset(stage)
    judged = _judged(situation, seed, heard)
    note = "; ".join(filter(None, (judged.note, *not_as_said(showed))))
    return replace(judged, stayed=stayed, watched=watched, seen=seen, runbook=showed, note=note)


def _judged(situation: Situation, seed: int, heard: list[Heard]) -> Judgement:
    verdict, seconds, others = judge(situation, heard, seed % situation.cluster.osds)
    return Judgement(
        name=situation.name,
        seed=seed,
        digest=situation.digest,
        healthy=situation.healthy,
        verdict=verdict,
        seconds=seconds,
        critical=any(it.labels.get("severity") == "critical" for it in others),
        others=[str(it) for it in others],
        heard=[str(it) for it in heard],
        note="; ".join(f"not all was watched: {it}" for it in watch_failures(heard)),
    )


async def _stayed(stage: Stage, on: Watched, heard: list[Heard]) -> float | None:
    """How much of the time that the fault stayed the expected alerts fired; the worst of them."""
    situation = stage.situation
    if not situation.stay or situation.healthy or judge(situation, heard, stage.turn)[1] is None:
        return None
    shares = []
    for finding in situation.expect:
        which = f'alertstate="firing",alertname=~"({"|".join(finding.alert)})({WARNING_SUFFIX})?"'
        if finding.osd is not None:
            which += f',ceph_daemon="{osd_name(finding.osd, stage.turn, situation.cluster.osds)}"'
        fires = f"max(ALERTS{{{which}}}) or vector(0)"
        share = await on.number(f"avg_over_time(({fires})[{situation.stay:.0f}s:1s])")
        shares.append(share or 0.0)
    return min(shares)


def _keep(on: Watched, where: Path) -> None:
    """All series, for a Prometheus to open, and what the daemons logged."""
    marked.renew(where, "truth")
    # Files of the database come and go while it is copied.
    with contextlib.suppress(shutil.Error):
        shutil.copytree(on.stack.dir / "prometheus", where / "prometheus")
    shutil.copytree(on.lab.paths.logs, where / "logs")


async def _courses(on: Watched, seconds: int) -> dict[str, dict[str, str]]:
    return {name: found for name in SEEN if (found := await _course(on, name, seconds))}


async def _course(on: Watched, name: str, seconds: int) -> dict[str, str]:
    """What a figure was, every other second until now; a dot where it was absent."""
    moments = range(-(seconds // _STEP * _STEP), 1, _STEP)
    now = time.time()
    found = {}
    for each in await on.stack.query(f"{name}[{seconds}s:{_STEP}s]"):
        labels = each["metric"]
        keep = ("ceph_daemon", "class", "cause", "by", "at", "interface")
        words = [labels[key] for key in keep if key in labels]
        values = {round((float(at) - now) / _STEP) * _STEP: float(it) for at, it in each["values"]}
        course = [f"{values[it]:.3g}" if it in values else "." for it in moments]
        found[" ".join(words)] = " ".join(course)
    return dict(sorted(found.items()))


async def _quiet_cluster(lab: RunningLab) -> None:
    await until(lambda: clean(StagedLab(lab)), "all placement groups clean", 90)


async def _pool(lab: RunningLab, situation: Situation) -> str:
    name, ceph = "truth", ["ceph", "osd"]
    groups = str(situation.groups)
    if situation.size:
        await lab.exec([*ceph, "pool", "create", name, groups])
        sure = ["--yes-i-really-mean-it"] if situation.size == 1 else []
        await lab.exec([*ceph, "pool", "set", name, "size", str(situation.size), *sure])
        return name
    profile = ["k=2", "m=1", "crush-failure-domain=osd"]
    await lab.exec([*ceph, "erasure-code-profile", "set", "truth", *profile])
    await lab.exec([*ceph, "pool", "create", name, groups, groups, "erasure", "truth"])
    return name


async def _policy(lab: RunningLab, situation: Situation, pool: str) -> Path | None:
    if situation.target is None:
        return None
    watched = Watched(lab, None, None)  # type: ignore[arg-type]
    await watched.write(pool, 4)
    baseline = await watched.write(pool, 8)
    path = lab.paths.work / "policy.yaml"
    each = f"scope: cluster, reservation: {situation.target}, baseline: {baseline}"
    path.write_text(f"version: 1\ntargets:\n  - {{class: client, {each}}}\n", encoding="utf-8")
    return path


async def delivered_at_its_end(stage: Stage, on: Watched) -> float:
    """What an OSD delivers when it has all that it can do."""
    await on.config(capacity_option(stage.situation), LOW)
    seconds = _SATURATED + min(stage.situation.stay, _SUSTAINED)
    at_its_end = on.write(stage.pool, seconds + 1)
    await asyncio.sleep(seconds)
    found = await on.number("avg(max_over_time(osd:cephqos_delivered_ops:rate[10s]))")
    await at_its_end
    assert found, "the OSDs did nothing under load"
    return found


async def play(stage: Stage, on: Watched, chance: random.Random) -> list[Heard]:
    """Loads and faults; what reached the receiver, by the clock of the last fault."""
    situation = stage.situation
    await asyncio.sleep(chance.uniform(0, 1))  # scrapes come at another moment of it
    before = [dict(labels) for labels in await on.firing()]
    faults = sorted(situation.faults, key=lambda it: it.after)
    # What is there from the start takes its time on a busy machine, and loads last so long only.
    for fault in (it for it in faults if not it.after):
        await FAULTS[fault.kind](stage, fault)
    staged = begin = time.monotonic()
    stage.staged = time.time()
    for load in situation.loads:
        stage.run(LOADS[load.kind](stage, load, stage.load_seconds))
    loads = stage.tasks[-len(situation.loads) :] if situation.loads else []
    for fault in (it for it in faults if it.after):
        await asyncio.sleep(max(0.0, begin + fault.after - time.monotonic()))
        await FAULTS[fault.kind](stage, fault)
        staged, stage.staged = time.monotonic(), time.time()

    tenant: list[Heard] = []

    def heard() -> list[Heard]:
        told = on.webhook.firing_since(begin)
        fresh = {str(sorted(it.labels.items())): it for it in reversed(told)}.values()
        return [*(_heard(it, staged) for it in fresh if dict(it.labels) not in before), *tenant]

    # However long staging took, what is staged is looked at for as long.
    end = staged + situation.seconds - fault_at(situation) + situation.stay * situation.healthy
    while time.monotonic() < end:
        await asyncio.sleep(1)
        since = time.monotonic() - staged
        if not tenant and (seen := await noisy_tenant(on.stack.query, stage.noisy, since)):
            tenant.append(seen)
        if not situation.healthy and judge(situation, heard(), stage.turn)[0] == "right":
            await asyncio.sleep(min(SETTLED, max(0.0, end - time.monotonic())))
            await asyncio.sleep(situation.stay)
            return heard()
    await asyncio.sleep(_TOLD)
    if situation.healthy:
        assert not any(load.done() for load in loads), "a load has ended: is an OSD full?"
        await _took_place(stage, on, time.monotonic() - begin)
    return heard()


async def _took_place(stage: Stage, on: Watched, seconds: float) -> None:
    """Silence proves something only if the loads ran and what is staged took place."""
    of_clients = f'{QosSeries.OPS}{{class="client"}}'
    at_least = {of_clients: seconds} if stage.situation.loads else {}
    if stage.situation.happened:
        at_least[stage.situation.happened] = 1
    for counter, least in at_least.items():
        found = await on.number(f"sum(increase({counter}[{seconds:.0f}s]))") or 0.0
        assert found >= least, f"{counter} grew by {found:.0f} in {seconds:.0f} s"


def _heard(received: Received, staged: float) -> Heard:
    description = received.annotations.get("description", "")
    return Heard.of(received.time - staged, received.labels, description)
