"""A cluster of three hosts with two OSDs each, behind a real connection. It notes the order of the
commands that change it, and in which state it was when an OSD was told to restart."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection, ConfAccess

HOSTS = {"a": (0, 3), "b": (1, 4), "c": (2, 5)}
PGS = [f"1.{number}" for number in range(4)]
TYPES = [
    {"type_id": number, "name": name}
    for number, name in ((0, "osd"), (1, "host"), (3, "rack"), (10, "root"))
]


def rule(number: int, *steps: dict[str, Any], root: int = -1, kind: int = 1) -> dict[str, Any]:
    """`kind`: 1 for copies, 3 for erasure codes."""
    ends = {"op": "take", "item": root}, {"op": "emit"}
    whole = [ends[0], *steps, ends[1]]
    return {"rule_id": number, "rule_name": f"r{number}", "type": kind, "steps": whole}


def over(kind: str, op: str = "chooseleaf_firstn", num: int = 0) -> dict[str, Any]:
    return {"op": op, "num": num, "type": kind}


def crush(*rules: dict[str, Any]) -> dict[str, Any]:
    """The hosts a and b in the rack r1, c in r2; and copies of the buckets for one class."""
    buckets: list[dict[str, Any]] = [
        {"id": -1, "name": "default", "type_name": "root", "items": [{"id": -2}, {"id": -3}]},
        {"id": -2, "name": "r1", "type_name": "rack", "items": [{"id": -10}, {"id": -11}]},
        {"id": -3, "name": "r2", "type_name": "rack", "items": [{"id": -12}]},
    ]
    for number, (host, osds) in enumerate(HOSTS.items()):
        items = [{"id": osd} for osd in osds]
        for below, suffix in ((-10, ""), (-20, "~ssd")):
            name = f"{host}{suffix}"
            bucket = {"id": below - number, "name": name, "type_name": "host", "items": items}
            buckets.append(bucket)
    return {"types": TYPES, "buckets": buckets, "rules": list(rules or (rule(0, over("host")),))}


class CephadmCluster:
    """The client of its monitors. What tests change is public."""

    def __init__(self) -> None:
        self.course: list[str] = []
        self.up = dict.fromkeys(range(6), True)
        self.nonce = {osd: 100 + osd for osd in self.up}
        self.queue = dict.fromkeys(self.up, "wpq")  # what each process runs
        self.stored: dict[tuple[str, str], str] = {}
        self.returns = dict.fromkeys(self.up, 2)  # looks until an OSD is up again; -1: never
        self.same_process: set[int] = set()  # that come up again as what they were
        self.noes = 0  # so often `ok-to-stop` says no; -1: always
        self.dirty_for = 2  # looks for which PGs are degraded after a restart; -1: always
        self.always_dirty: set[str] = set()  # PGs
        self.heals_in = -1  # looks until those are clean; -1: never
        self.stale_looks = 0  # after a start, at which PGs are shown as they were before it
        self.flags = "sortbitwise"
        self.pools = [{"pool_name": "p", "size": 3, "min_size": 2, "crush_rule": 0}]
        self.xinfo: list[dict[str, Any]] = []
        self.held: list[str] = []  # PGs of any OSD
        self.markdowns = 5  # in ten minutes, after which an OSD ends itself
        self.crush = crush()
        self.used = dict.fromkeys(self.up, 10)  # GiB, of 100
        self.weight = dict.fromkeys(self.up, 1.0)
        self.orchestrator: dict[str, Any] | None = {"available": True, "backend": "cephadm"}
        self.unmanaged: set[int] = set()
        self.host_status = dict.fromkeys(HOSTS, "")
        self.unknown: set[str] = set()  # options
        self.at_restart: Callable[[], None] = lambda: None
        self._starting: dict[int, int] = {}
        self._dirty = 0
        self._stale = 0

    async def close(self) -> None: ...

    @property
    def harmed(self) -> list[str]:
        """What was told to restart while OSDs of another host were down or PGs were not clean."""
        return [line for line in self.course if line.startswith("HARM")]

    @property
    def restarts(self) -> list[str]:
        return [line for line in self.course if line.startswith(("ok-to-stop", "restart"))]

    async def command(self, prefix: str, **arguments: Any) -> Any:
        answer = getattr(self, f"_{prefix.replace(' ', '_').replace('-', '_')}", None)
        if answer is None:
            raise AssertionError(f"not expected: {prefix} {arguments}")
        return answer(SimpleNamespace(**arguments))

    # -- maps and figures -----------------------------------------------------------------------

    def _osd_dump(self, _: Any) -> Any:
        for osd in list(self._starting):
            self._starting[osd] -= 1
            if self._starting[osd] == 0:
                del self._starting[osd]
                self.up[osd] = True
                self._dirty, self._stale = self.dirty_for, self.stale_looks
                if osd not in self.same_process:
                    self.nonce[osd] += 1000
                    self.queue[osd] = self.stored.get(("osd", "osd_op_queue"), "wpq")
        osds = {"osds": list(self._osds()), "osd_xinfo": self.xinfo}
        return {"flags": self.flags, "pools": self.pools, **osds}

    def _config_show(self, _: Any) -> Any:
        return {"osd_max_markdown_count": str(self.markdowns)}

    def _pg_ls_by_osd(self, _: Any) -> Any:
        return {"pg_stats": [{"pgid": pg} for pg in self.held]}

    def _osds(self) -> Iterator[dict[str, Any]]:
        for osd, up in self.up.items():
            yield {
                "osd": osd,
                "up": int(up),
                "in": 1,
                "weight": 1.0,
                "up_from": self.nonce[osd],
                "state": ["exists"],
                "public_addrs": {"addrvec": [{"addr": "10.0.0.1:6800", "nonce": self.nonce[osd]}]},
            }

    def _osd_crush_dump(self, _: Any) -> Any:
        return self.crush

    def _osd_df(self, asked: Any) -> Any:
        assert asked.target == "mgr"
        nodes = [
            {
                "id": osd, "crush_weight": self.weight[osd], "reweight": 1.0, "kb": 100 << 20,
                "kb_used": used << 20,
            }
            for osd, used in self.used.items()
        ]  # fmt: skip
        return {"nodes": nodes, "stray": []}

    def _osd_ls(self, _: Any) -> Any:
        return list(self.up)

    def _flush_pg_stats(self, _: Any) -> Any:
        return 1

    def _osd_last_stat_seq(self, _: Any) -> Any:
        return 1

    def _states(self) -> dict[str, str]:
        dirty = not all(self.up.values()) or self._dirty
        state = "active+undersized+degraded" if dirty else "active+clean"
        return {pg: "active+remapped" if pg in self.always_dirty else state for pg in PGS}

    def _pg_dump(self, asked: Any) -> Any:
        assert asked.target == "mgr" and asked.dumpcontents == ["pgs_brief"]
        if self.heals_in > 0:
            self.heals_in -= 1
            self.always_dirty = self.always_dirty if self.heals_in else set()
        states = self._states()
        if self._stale:
            self._stale -= 1
            states = dict.fromkeys(states, "active+clean")
        elif self._dirty and all(self.up.values()):
            self._dirty -= 1
        return {"pg_stats": [{"pgid": pg, "state": state} for pg, state in states.items()]}

    def _pg_stat(self, _: Any) -> Any:
        states = [pg["state"] for pg in self._pg_dump(_PGS_BRIEF)["pg_stats"]]
        kinds = [{"name": state, "num": states.count(state)} for state in set(states)]
        return {"num_pg_by_state": kinds}

    # -- what changes it ------------------------------------------------------------------------

    def _osd_ok_to_stop(self, asked: Any) -> Any:
        assert asked.target == "mgr"
        no = self.noes != 0
        self.noes -= no
        self.course.append(f"ok-to-stop {' '.join(asked.ids)}: {'no' if no else 'yes'}")
        if no:
            raise CommandFailed("osd ok-to-stop", -16, "unsafe: 4 PGs would become offline")
        return {"ok_to_stop": {"ok_to_stop": True, "osds": asked.ids}}

    def _orch_daemon(self, asked: Any) -> Any:
        osd = int(asked.name.removeprefix("osd."))
        (together,) = (osds for osds in HOSTS.values() if osd in osds)
        others = [other for other, up in self.up.items() if not up and other not in together]
        down_here = not all(self.up[other] for other in together)
        if others or (not down_here and set(self._states().values()) != {"active+clean"}):
            self.course.append(f"HARM: osd.{osd} restarts while {others or 'PGs'} are not well")
        self.course.append(f"restart osd.{osd}")
        self.at_restart()
        self.up[osd] = False
        self._starting[osd] = self.returns[osd]
        return f"Scheduled to restart {asked.name}"

    def _orch_status(self, _: Any) -> Any:
        if self.orchestrator is None:
            raise CommandFailed("orch status", -2, "No orchestrator configured")
        return self.orchestrator

    def _orch_ps(self, asked: Any) -> Any:
        assert asked.daemon_type == "osd"
        return [
            {"daemon_type": "osd", "daemon_id": str(osd), "hostname": host}
            for host, osds in HOSTS.items()
            for osd in osds
            if osd not in self.unmanaged
        ]

    def _orch_host_ls(self, _: Any) -> Any:
        return [{"hostname": host, "status": status} for host, status in self.host_status.items()]

    def _osd_set(self, asked: Any) -> None:
        self.course.append(f"set {asked.key}")

    # -- options --------------------------------------------------------------------------------

    def _config_help(self, asked: Any) -> Any:
        if asked.key in self.unknown:
            raise CommandFailed("config help", -2, f"{asked.key} not recognized")
        runtime = asked.key != "osd_op_queue"
        return {"name": asked.key, "type": "str", "can_update_at_runtime": runtime}

    def _config_dump(self, _: Any) -> Any:
        return [{"section": s, "name": n, "value": v} for (s, n), v in self.stored.items()]

    def _config_get(self, asked: Any) -> Any:
        if getattr(asked, "who", "") == "mon":
            return self.stored.get(("mon", asked.key), _OF_NEW_POOLS[asked.key])
        queue = self.queue[int(asked.target.removeprefix("osd."))]
        return {asked.var: queue if asked.var == "osd_op_queue" else "x"}

    def _config_set(self, asked: Any) -> None:
        self.course.append(f"config set {asked.name}")
        self.stored[asked.who, asked.name] = asked.value

    def _config_rm(self, asked: Any) -> None:
        self.course.append(f"config rm {asked.name}")
        self.stored.pop((asked.who, asked.name), None)

    def _quorum_status(self, _: Any) -> Any:
        return {"quorum_names": [], "monmap": {"mons": []}}

    def _mgr_dump(self, _: Any) -> Any:
        return {"active_name": ""}


_OF_NEW_POOLS = {"osd_pool_default_size": "3\n", "osd_pool_default_crush_rule": "-1\n"}
_PGS_BRIEF = SimpleNamespace(target="mgr", dumpcontents=["pgs_brief"])


def connection(cluster: CephadmCluster, folder: Path) -> tuple[ClusterConnection, list[str]]:
    """A connection to it as to any given cluster, and what it tells."""

    class Access(ConfAccess):
        def client(self) -> Any:
            return cluster

    told: list[str] = []
    conf = folder / "ceph.conf"
    conf.write_text("fsid = f\n")
    access = Access(conf, None, "admin", folder / "work", "python3")
    link = ClusterConnection(access)
    link.note = told.append
    return link, told
