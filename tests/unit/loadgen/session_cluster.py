"""A session's cluster and its lock, without either."""

from typing import Any

import pytest

from cephqos_loadgen.run import session


class Cluster:
    """OSDs of a host, and what it was asked for. Tests change its answers."""

    fsid = "f"
    pid = None

    def __init__(self, *osds: dict[str, Any]) -> None:
        self.metadata = osds
        self.asked: list[str] = []
        self.down: set[int] = set()
        self.flags = "sortbitwise"
        self.option = "true"  # the value of each
        self.options: list[dict[str, str]] = []
        self.pools = ["rbd"]
        self.osd_flags = ["noout"]
        self.affinity = 1.0
        self.checks: dict[str, Any] = {}

    async def __aenter__(self) -> "Cluster":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def wait_for_pgs(self, **_: object) -> None:
        """They are clean."""
        self.asked.append("wait_for_pgs")

    async def pids(self) -> dict[str, int]:
        return {f"osd.{osd['id']}": 10 for osd in self.metadata if osd["hostname"] == "h"}

    async def up_osds(self) -> list[int]:
        return [osd["id"] for osd in self.metadata]

    def _osd(self, number: int) -> dict[str, Any]:
        state = ["exists", "up", *self.osd_flags]
        osd = {"osd": number, "in": 1, "up": int(number not in self.down), "weight": 1.0}
        return osd | {"state": state, "primary_affinity": self.affinity}

    async def command(self, prefix: str, **_: object) -> Any:
        self.asked.append(prefix)
        pools = [{"pool_name": name} for name in self.pools]
        osds = [self._osd(osd["id"]) for osd in self.metadata]
        return {
            "osd metadata": self.metadata,
            "osd dump": {"flags": self.flags, "pools": pools, "osds": osds},
            "config dump": self.options,
            "config get": self.option,
            "osd pool ls": [],
            "balancer status": {"active": False},
            "status": {"health": {"checks": self.checks}},
        }.get(prefix, [])


class Lock:
    """Nobody else holds the cluster."""

    lost = False
    given_back = None

    def __init__(self, *_: object, **__: object) -> None: ...

    async def __aenter__(self) -> "Lock":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def save(self, steps: object) -> None: ...

    async def look(self) -> None: ...


def stand_in(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Cluster:
    """Sessions have this cluster."""
    monkeypatch.setattr(session, "ClusterConnection", lambda access: cluster)
    monkeypatch.setattr(session, "ClusterLock", Lock)
    monkeypatch.setattr(session, "write_client_conf", lambda access, options: "")
    return cluster
