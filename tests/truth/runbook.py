"""What the runbooks' queries and commands show while the fault that they are for is staged."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import psutil
from tests.runbooks import ENTRIES
from tests.stack.conftest import Watched

from cephqos_stack.staged.judge import Heard

_BLOCK: Final = re.compile(r"^ *```promql\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# - **cpu** by `cpu_limit` or `memory_limit`: what a cause has to say, and of which `by`.
_BULLET: Final = re.compile(r"^- \*\*(\w+)\*\*(?: by ([^:]+))?:", re.MULTILINE)
_REPLICA_WRITE: Final = "osd_repop"
# What is usual takes more than these seconds, only a device that is slow is shown as such, and 16.2
# does not tell how late requests are. A limit is of the CPU or of memory, seldom of both.
_MAY_BE_ABSENT: Final = ("median1d", "osd_at:", "reservation_lag", "cephqos_cgroup_")
NOT_AS_SAID: Final = "not as said: "

# In the table of ReservationViolated: where the slowest operations waited, by cause. Without a CPU
# they wait anywhere, and where other work is in the way (other_class, replica_writes) it may fill
# the scheduler or the device, here or on other OSDs.
_SCHEDULER, _OWN, _PEER = "in the scheduler", "for its own device or CPU", "for another OSD"
_WAITED: Final = {
    "limit": (_SCHEDULER,),
    "capacity": (_OWN,),
    "device": (_OWN, _SCHEDULER),  # a read holds the thread that serves others, too
    "other_osd": (_PEER,),
    "network": (_PEER,),
}
# The first look of ReplicaSlow: many replica writes are in progress, or none or one.
_HOLDS: Final = {"device": True, "cpu": True, "network": False}
_NONE, _MANY = 3, 5
# Step 1 there: far above the others for want of the device or a CPU, and not for the network.
_FAR_ABOVE: Final = 5.0


def queries(alert: str, cause: str, by: str = "") -> list[str]:
    """Those to look at first, and those of the cause: of what is to blame, if that has its own."""
    general, _, causes = ENTRIES[alert].partition("**By cause.**")
    parts = _BULLET.split(causes.split("\n**False alarm")[0])
    bullets = list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))
    usual = [text for name, names, text in bullets if name == cause and not names]
    own = [text for name, names, text in bullets if name == cause and f"`{by}`" in (names or "")]
    of_cause = "".join(own or usual)
    blocks = _BLOCK.findall(general) + _BLOCK.findall(of_cause)
    return [line.strip() for block in blocks for line in block.splitlines()]


async def shown(on: Watched, heard: Sequence[Heard], commands: bool = True) -> dict[str, str]:
    """By alert and query or command, what it shows; `NOT_AS_SAID` where the text says another."""
    found: dict[str, str] = {}
    for labels in _newest(heard):
        osd, name = labels.get("ceph_daemon", ""), labels["alertname"]
        if name not in ENTRIES:
            continue
        shows = {}
        if osd:
            which = queries(name, labels.get("cause", ""), labels.get("by", ""))
            shows = await _queries(on, osd, which)
        if commands and name in _COMMANDS:
            shows |= await _COMMANDS[name](on, labels)
        what = f"{name.removeprefix('CephQos')} {osd}".strip()
        found |= {f"{what}: {it}": text for it, text in shows.items()}
    return found


def _newest(heard: Sequence[Heard]) -> Iterable[Mapping[str, str]]:
    """The last cause of each alert."""
    which = ("alertname", "ceph_daemon", "class")
    in_order = sorted(heard, key=lambda it: it.after)
    return {tuple(it.labels.get(key) for key in which): it.labels for it in in_order}.values()


def not_as_said(found: Mapping[str, str]) -> list[str]:
    return [f"{it}: {text}" for it, text in found.items() if text.startswith(NOT_AS_SAID)]


async def _queries(on: Watched, osd: str, which: Iterable[str]) -> dict[str, str]:
    """How many series each shows for the OSD of the alert, and the largest."""
    found = {}
    for query in which:
        series = await on.stack.query(query.replace("osd.N", osd))
        values = [float(it["value"][1]) for it in series]
        most = f", at most {max(values):.3g}" if values else ""
        may_be = any(it in query for it in _MAY_BE_ABSENT)
        found[query] = _said(bool(series) or may_be, f"{len(series)} series{most}")
    return found


async def _of_replica_slow(on: Watched, labels: Mapping[str, str]) -> dict[str, str]:
    osd, cause = labels["ceph_daemon"], labels["cause"]
    ops = await _told(on, "tell", osd, "dump_ops_in_flight")
    held = sum(_REPLICA_WRITE in op["description"] for op in ops["ops"])
    as_said = cause not in _HOLDS or (held >= _MANY if _HOLDS[cause] else held <= _NONE)
    shows = {"dump_ops_in_flight": _said(as_said, f"{held} {_REPLICA_WRITE}")}
    return shows | await _of_perf(on, osd, cause, await _commits(on))


async def _of_violated(on: Watched, labels: Mapping[str, str]) -> dict[str, str]:
    osd, cause = labels["ceph_daemon"], labels["cause"]
    commits = await _commits(on)
    perf = await _of_perf(on, osd, cause, commits)
    # What never ends is not among the slowest that have ended.
    stopped = cause == "device" and not commits[osd] and not await _reads_slowly(on, osd)
    which = "dump_ops_in_flight" if stopped else "dump_historic_ops"
    ops = (await _told(on, "tell", osd, which))["ops"]
    waited = Counter(where for op in ops if (where := waited_at(op)))
    expected = _WAITED.get(cause) if labels["class"] == "client" else None
    as_said = not (expected and waited) or waited.most_common(1)[0][0] in expected
    if cause == "device" and not as_said:  # of two slow OSDs they wait for the slower one
        as_said = _PEER in waited and commits[osd] < max(commits.values())
    text = ", ".join(f"{count} {where}" for where, count in waited.most_common())
    return perf | {which: _said(as_said, text or "nothing")}


async def _of_limit(on: Watched, labels: Mapping[str, str]) -> dict[str, str]:
    async def show(name: str) -> str:
        # The alert is of the cluster, and every OSD has the setting.
        argv = ["ceph", "config", "show", "osd.0", f"osd_mclock_{name}"]
        return (await on.lab.exec(argv)).stdout.strip()

    profile, limit = await show("profile"), await show(f"scheduler_{labels['class']}_lim")
    as_said = profile == "custom" and float(limit) > 0
    return {"config show": _said(as_said, f"profile {profile}, limit {limit}")}


async def _of_silent(on: Watched, labels: Mapping[str, str]) -> dict[str, str]:
    """Whether the process is there, and stopped, as the reason in the figures says."""
    osd = labels.get("ceph_daemon")
    if not osd:  # the warning is of the cluster
        return {}
    up = await on.stack.query(f'cephqos_daemon_up{{ceph_daemon="{osd}"}} == 0')
    reason = up[0]["metric"]["reason"] if up else "none"
    pid = (await on.lab.pids()).get(osd)
    state = psutil.Process(pid).status() if pid else None
    as_said = not pid if reason == "refused" else reason == "timeout" and bool(pid)
    return {"ps": _said(as_said, f"{state or 'not in the list'}, reason {reason}")}


async def _of_target(on: Watched, labels: Mapping[str, str]) -> dict[str, str]:
    """Recovery that takes the share of clients is in the status."""
    said = (await on.lab.exec(["ceph", "-s"])).stdout
    words = [word for word in ("recovery:", "backfilling", "recovering") if word in said]
    as_said = bool(words) or labels.get("cause") != "other_class"
    return {"ceph -s": _said(as_said, ", ".join(words) or "no recovery")}


_COMMANDS: Final = {
    "CephQosReplicaSlow": _of_replica_slow,
    "CephQosReservationViolated": _of_violated,
    "CephQosAtLimitWhileIdle": _of_limit,
    "CephQosDaemonNotAnswering": _of_silent,
    "CephQosPolicyTargetViolated": _of_target,
}


async def _commits(on: Watched) -> dict[str, int]:
    """Milliseconds, as `ceph osd perf` has them."""
    said = await _told(on, "osd", "perf")
    every = (said.get("osdstats") or said)["osd_perf_infos"]
    return {f"osd.{it['id']}": it["perf_stats"]["commit_latency_ms"] for it in every}


async def _reads_slowly(on: Watched, osd: str) -> bool:
    series = f'osd_at:cephqos_device_seconds:rate{{ceph_daemon="{osd}",at="read"}}'
    return bool(await on.stack.query(series))


async def _of_perf(on: Watched, osd: str, cause: str, commits: Mapping[str, int]) -> dict[str, str]:
    own = commits[osd]
    others = sorted(it for name, it in commits.items() if name != osd)
    far_above = own >= _FAR_ABOVE * max(1, others[-1] if cause == "network" else others[0])
    text = f"{own} ms, others {others} ms"
    if cause == "device" and not far_above:
        if await _reads_slowly(on, osd):
            return {"ceph osd perf": f"{text}; reads are slow"}
        if not own:
            return {"ceph osd perf": f"{text}; no commit ends"}
    as_said = cause not in _HOLDS or far_above == _HOLDS[cause]
    return {"ceph osd perf": _said(as_said, text)}


def waited_at(op: Mapping[str, Any]) -> str | None:
    """Where a client's operation waited longest, or waits now; None without such events."""
    events = [(_time(it["time"]), it["event"]) for it in op["type_data"]["events"]]
    if events and events[-1][1] != "done":
        events.append((_time(op["initiated_at"]) + op["age"], "sub_op_commit_rec to come"))
    names = [name for _, name in events]
    if not op["description"].startswith("osd_op(") or "reached_pg" not in names:
        return None
    if any(it.startswith("waiting for ") and "subops" not in it for it in names):
        return None  # while its placement group peered
    gaps = [(after[0] - before[0], at) for at, (before, after) in enumerate(pairwise(events), 1)]
    _, end = max(gaps)
    if end <= names.index("reached_pg"):
        return _SCHEDULER
    own = names.index("op_commit") if "op_commit" in names else len(names)
    return _PEER if end > own and "sub_op_commit_rec" in names[end] else _OWN


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _said(as_said: bool, text: str) -> str:
    return text if as_said else f"{NOT_AS_SAID}{text}"


async def _told(on: Watched, *words: str) -> Any:
    return json.loads((await on.lab.exec(["ceph", *words, "--format", "json"])).stdout)
