"""Shares that were set for a custom profile, and stay in force above a built-in one."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster

from cephqos_loadgen.cluster import device_queues, set_shares
from cephqos_loadgen.run import session
from cephqos_loadgen.run.session import Session

RES = "osd_mclock_scheduler_client_res"
SET = {"default": 0.5, "mon": 0.3, "final": 0.3}
CUSTOM = {"default": "balanced", "mon": "custom", "final": "custom"}


class Shared(ChangedCluster):
    """OSDs with differences from their defaults, as 18.2.7 and 20.2.4 print them."""

    def __init__(self, version: str = "20.2.4", profile: Any = None, res: Any = SET) -> None:
        super().__init__()
        self.version = version
        self.differences = {RES: res, "osd_mclock_scheduler_client_wgt": {"default": 1, "final": 1}}
        if profile:
            self.differences["osd_mclock_profile"] = profile

    async def up_osds(self) -> list[int]:
        return [*self.osd_map]

    def _osd_metadata(self) -> list[dict[str, Any]]:
        return [{"id": osd, "ceph_version_short": self.version} for osd in self.osd_map]

    def _config_diff(self) -> dict[str, Any]:
        return {"diff": self.differences}


async def said(cluster: Any, **how: Any) -> str:
    return await set_shares.above_profile(cluster, [0, 1], **how)


async def test_they_are_said_with_what_removes_them() -> None:
    cluster = Shared()
    cluster.options = {("osd", RES): "0.3", ("osd.7", RES): "0.3", ("osd", "osd_max_scrubs"): "2"}
    assert await said(cluster, profile="balanced") == (
        f"the profile balanced does not replace {RES} of osd.0, osd.1, set for a custom profile:"
        " they stay in force until they are removed and the profile changes after that (ceph config"
        f" set osd osd_mclock_profile custom, and back): ceph config rm osd {RES}"
    )


async def test_a_section_with_a_mask_is_removed_with_its_mask() -> None:
    class Masked(Shared):
        def _config_dump(self) -> list[dict[str, str]]:
            return [{"section": "osd", "mask": "class:hdd", "name": RES, "value": "0.3"}]

    assert (await said(Masked())).endswith(f": ceph config rm osd/class:hdd {RES}")
    assert "are in ceph.conf" in await said(Shared()), "the monitors have none"


async def test_many_osds_are_counted() -> None:
    cluster = Shared()
    cluster.osd_map = {osd: {"up": 1} for osd in range(9)}
    found = await set_shares.above_profile(cluster, [*range(9)])  # type: ignore[arg-type]
    assert f"{RES} of osd.0, osd.1, osd.2, osd.3, osd.4 and 4 more, set" in found


@pytest.mark.parametrize(
    ("cluster", "how"),
    [
        (Shared(profile=CUSTOM), {}),
        (Shared(), {"ours": {RES}}),
        (Shared("21.1.0"), {}),
        (Shared("Development"), {}),
        (Shared(res={"default": 0.5, "final": 0.5}), {}),
    ],
)
async def test_where_they_do_not_count_or_are_meant_nothing_is_said(
    cluster: Shared, how: dict[str, Any]
) -> None:
    assert await said(cluster, **how) == ""


async def test_a_profile_that_is_to_come_is_judged_instead_of_a_custom_one() -> None:
    cluster = Shared(profile=CUSTOM)
    found = await said(cluster, profile="high_client_ops")
    assert found.startswith("the profile high_client_ops does not replace")


@pytest.mark.parametrize(("scheduler", "warnings"), [("mclock_scheduler", 1), ("wpq", 0)])
async def test_a_point_of_a_run_gets_a_warning(
    scheduler: str, warnings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Running(Shared):
        def _config_show(self) -> dict[str, str]:
            return {"osd_op_queue": scheduler, "osd_mclock_max_sequential_bandwidth_ssd": "1"}

        def _dump_op_pq_state(self) -> dict[str, Any]:
            return {}

    class Settings:
        async def apply(self, options: object) -> dict[str, Any]:
            return {}

        async def effective(self, osd: int) -> dict[str, str]:
            return cluster._config_show()

    async def no_devices(self: object, point: object) -> list[str]:
        return []

    async def change_nothing(*_: object) -> None: ...

    cluster, events = Running(), []
    monkeypatch.setattr(Session, "_devices", no_devices)
    monkeypatch.setattr(session, "write_client_conf", lambda *_: "")
    monkeypatch.setattr(device_queues, "apply", change_nothing)
    run: Any = object.__new__(Session)
    run.access, run.cluster, run.settings, run.journal = None, cluster, Settings(), None
    run._capacity = {}
    run.archive = SimpleNamespace(
        text=lambda *_: None, event=lambda kind, **fields: events.append((kind, fields))
    )
    point: Any = SimpleNamespace(name="p", client={}, flags=(), devices=None, settings=())
    in_force = await run.apply(point)
    assert len(in_force.warnings) == len(events) == warnings
