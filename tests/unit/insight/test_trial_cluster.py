"""A trial's hold on a cluster: what it refuses, what it notices, what it undoes."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.servers import NoAnswer
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_insight.trial import readers
from cephqos_insight.trial.alert_watch import WatchedAlerts
from cephqos_insight.trial.cluster import RealWorld
from cephqos_insight.trial.plan import parse_candidate
from cephqos_insight.trial.readers import OsdReaders
from cephqos_loadgen.plan.errors import ClusterAway, ClusterUnfit, NotRestored, SettingRefused

AT_START = "osd_op_num_shards"
ROW = {"axes": [{"ranges": [{"max": -1}, {"min": 0, "max": 99999}]}], "values": [[0], [7]]}
CLIENT_RES = "osd_mclock_scheduler_client_res"
# As 20.2.4 shows its profile balanced.
CONFIG = {
    "osd_op_queue": "mclock_scheduler",
    "osd_mclock_max_sequential_bandwidth_ssd": "1",
    "osd_mclock_profile": "balanced",
    "osd_max_scrubs": "1",
    **{
        f"osd_mclock_scheduler_{cls}_{part}": value
        for cls, values in (
            ("client", ("0.500000", "1", "0.000000")),
            ("background_recovery", ("0.500000", "1", "0.000000")),
            ("background_best_effort", ("0.050000", "2", "0.900000")),
        )
        for part, value in zip(("res", "wgt", "lim"), values, strict=True)
    },
}
HISTOGRAMS = ("op_r_latency_out_bytes", "op_w_latency_in_bytes", "op_rw_latency_in_bytes")


class TriedCluster(ChangedCluster):
    """Two OSDs that say what is set, and count operations."""

    def __init__(self) -> None:
        super().__init__()
        self.mute: set[str] = set()
        self.version = "20.2.4"
        self.shown: dict[str, dict[str, str]] = {}  # by daemon: what differs from the others
        self.differences: dict[str, Any] = {}
        self.groups: list[dict[str, Any]] = []
        self.noted: list[str] = []
        self.note = self.noted.append
        self.unknown: set[str] = set()  # options that this release does not have
        self.types: dict[str, str] = {}

    async def up_osds(self) -> list[int]:
        return [osd for osd, entry in self.osd_map.items() if entry["up"]]

    async def command(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
        if target in self.mute:
            raise CommandFailed(prefix, -110, "timed out")
        if prefix == "config get" and target != "mon":
            name = given["var"]
            return {name: self.options.get((target, name)) or self.options.get(("osd", name), "d")}
        if prefix == "config show":
            stored = {n: v for (who, n), v in self.options.items() if who in ("osd", target)}
            return CONFIG | stored | self.shown.get(target, {})
        return await super().command(prefix, target=target, **given)

    async def once(self, prefix: str, **given: Any) -> Any:
        return await self.command(prefix, **given)

    def _config_help(self, key: str) -> dict[str, Any]:
        if key in self.unknown:
            raise CommandFailed("config help", -2, f"configuration option '{key}' not recognized")
        found = {**super()._config_help(key), "can_update_at_runtime": key != AT_START}
        return {**found, "type": self.types.get(key, found["type"])}

    def _config_diff(self) -> dict[str, Any]:
        return {"diff": self.differences}

    def _quorum_status(self) -> dict[str, Any]:
        return {"quorum_names": [], "monmap": {"mons": []}}

    def _mgr_dump(self) -> dict[str, str]:
        return {"active_name": ""}

    def _mgr_metadata(self) -> list[dict[str, str]]:
        return []

    async def osds(self) -> list[int]:
        return list(self.osd_map)

    def _osd_metadata(self) -> list[dict[str, Any]]:
        return [{"id": osd, "ceph_version_short": self.version} for osd in self.osd_map]

    def _pg_ls(self, states: list[str]) -> dict[str, Any]:
        assert states == ["scrubbing"]
        return {"pg_ready": True, "pg_stats": [pg for pg in self.groups if "scrub" in pg["state"]]}

    def _pg_ls_by_primary(self, osd: int) -> dict[str, Any]:
        return {"pg_stats": self.groups}

    def _perf_histogram_dump(self) -> dict[str, Any]:
        return {"osd": {f"{name}_histogram": ROW for name in HISTOGRAMS}}

    def _perf_dump(self) -> dict[str, Any]:
        sums = {f"op_{op}_latency": {"sum": 0.1} for op in ("r", "w", "rw")}
        return {"osd": {"recovery_ops": 0, **sums}}


RECORDED = "osd:cephqos_instance:info"


class FiringPrometheus:
    def __init__(self) -> None:
        self.alerts = [({"alertname": "Old", "cluster": ChangedCluster.fsid}, 1.0)]
        self.metadata: list[tuple[dict[str, str], float]] = []
        self.ages = {RECORDED: {ChangedCluster.fsid: 7.0}}  # seconds, by series and cluster
        self.lost = False
        self.violated = 0.0

    async def vector(self, query: str) -> Any:
        if self.lost:
            raise NoAnswer("connection refused")
        if query.startswith("ceph_osd_metadata"):
            return self.metadata
        if "timestamp" in query:
            ages = next((ages for name, ages in self.ages.items() if name in query), {})
            return [({"cluster": cluster}, age) for cluster, age in ages.items()]
        return [({}, self.violated)] if "violated" in query else self.alerts


def world_on(cluster: Any, *tries: str, prometheus: Any = None) -> RealWorld:
    async def save(steps: Any) -> None: ...

    async def look() -> None: ...

    lock: Any = SimpleNamespace(save=save, lost=False, failure="", look=look)
    candidates = [parse_candidate(text) for text in tries]
    return RealWorld(cluster, cluster, OsdReaders([cluster]), lock, candidates, prometheus)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (f"{AT_START}=4", UsageError, f"OSDs read {AT_START} only when they start"),
        ("osd_max_backfills=4", SettingRefused, "no effect while osd_mclock_override_recovery"),
        ("osd_scrub_cost=4", SettingRefused, "this release's mClock ignores it"),
        ("client_res=0.6", SettingRefused, "no effect while osd_mclock_profile is not custom"),
        ("osd.1/client_res=0.6", SettingRefused, "while osd_mclock_profile is not custom"),
        ("osd_max_scrubs=1", UsageError, "in force already; --try same"),
        ("osd.9/osd_max_scrubs=2", SettingRefused, "settings for osd.9: the cluster has"),
    ],
)
async def test_what_cannot_be_tried_is_refused_before_anything_is_changed(
    text: str, error: type[CephqosError], message: str
) -> None:
    cluster = TriedCluster()
    with pytest.raises(error, match=message):
        await world_on(cluster, "same", text).check()
    assert cluster.asked == []


@pytest.mark.parametrize(
    "text", ["profile=high_client_ops", "osd.1/capacity=450", "profile=custom client_res=0.6"]
)
@pytest.mark.parametrize("queues", [("wpq", "wpq"), ("mclock_scheduler", "wpq")])
async def test_what_only_mclock_reads_is_refused_while_an_osd_runs_another_scheduler(
    text: str, queues: tuple[str, str]
) -> None:
    cluster = TriedCluster()
    cluster.shown = {f"osd.{osd}": {"osd_op_queue": queue} for osd, queue in enumerate(queues)}
    with pytest.raises(SettingRefused, match=r"with mClock only, and osd.*1 has the scheduler wpq"):
        await world_on(cluster, text).check()
    assert cluster.asked == []
    await world_on(cluster, "slots=2").check()


async def test_all_osds_are_asked_whether_it_has_an_effect() -> None:
    cluster = TriedCluster()
    cluster.shown["osd.0"] = {"osd_mclock_profile": "custom", CLIENT_RES: "0.600000"}
    with pytest.raises(
        SettingRefused, match=r"osd\.1: .*no effect while osd_mclock_profile is not"
    ):
        await world_on(cluster, "client_res=0.6").check()
    await world_on(cluster, "profile=custom client_res=0.6").check()
    cluster.shown["osd.1"] = cluster.shown["osd.0"]
    cluster.types[CLIENT_RES] = "float"
    with pytest.raises(UsageError, match="in force already"):
        await world_on(cluster, "profile=custom client_res=0.6").check()
    cluster.osd_map[1]["up"] = 0
    with pytest.raises(SettingRefused, match=r"osd\.1 is down"):
        await world_on(cluster, "osd.1/osd_max_scrubs=3").check()


@pytest.mark.parametrize(("who", "mask"), [("osd.1", ""), ("osd", "class:ssd")])
async def test_a_value_that_would_stay_above_it_is_found_before_it_is_put_in_force(
    who: str, mask: str
) -> None:
    class Overridden(TriedCluster):
        value = "2"

        def _config_dump(self) -> list[dict[str, str]]:
            more = {"section": who, "name": "osd_max_scrubs", "value": self.value, "mask": mask}
            return [*super()._config_dump(), more]

    cluster = Overridden()
    section = "/".join(filter(None, (who, mask)))
    with pytest.raises(SettingRefused, match=f"{section} osd_max_scrubs; expected OSDs by name"):
        await world_on(cluster, "osd_max_scrubs=3").check()
    assert cluster.asked == []
    await world_on(cluster, "osd.1/osd_max_scrubs=3").check()
    cluster.value = "3"
    await world_on(cluster, "osd_max_scrubs=3").check()


async def test_slots_come_with_the_option_that_they_need_where_the_release_has_it() -> None:
    cluster = TriedCluster()
    cluster.options["osd", "osd_max_backfills"] = "1"
    world = world_on(cluster, "slots=2")
    await world.check()
    assert len(world.candidates[0].commands) == 2
    cluster.unknown.add("osd_mclock_override_recovery_settings")
    cluster.shown = {f"osd.{osd}": {"osd_op_queue": "wpq"} for osd in (0, 1)}
    world = world_on(cluster, "slots=2")
    await world.check()
    assert world.candidates[0].commands == ["ceph config set osd osd_max_backfills 2"]
    await world.put("slots=2")


async def test_a_share_may_be_tried_on_an_osd_that_has_a_custom_profile() -> None:
    cluster = TriedCluster()
    cluster.shown["osd.1"] = {"osd_mclock_profile": "custom"}
    await world_on(cluster, "osd.1/client_res=0.6").check()


@pytest.mark.parametrize("text", ["profile=high_client_ops", "osd.1/profile=high_client_ops"])
async def test_a_built_in_profile_is_refused_while_shares_are_set_that_it_would_not_replace(
    text: str,
) -> None:
    cluster = TriedCluster()
    cluster.options["osd", CLIENT_RES] = "0.3"
    cluster.differences = {
        CLIENT_RES: {"default": 0, "mon": 0.3, "final": 0.3},
        "osd_mclock_profile": {"default": "balanced", "mon": "custom", "final": "custom"},
    }
    with pytest.raises(SettingRefused, match=f"and back[)]: ceph config rm osd {CLIENT_RES}"):
        await world_on(cluster, text).check()
    assert cluster.asked == []
    cluster.version = "21.1.0"
    await world_on(cluster, text).check()


async def test_a_custom_profile_is_tried_whole_with_the_shares_in_force() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "profile=custom client_res=0.6")
    await world.check()
    (candidate,) = world.candidates
    assert candidate.commands[:2] == [
        "ceph config set osd osd_mclock_profile custom",
        f"ceph config set osd {CLIENT_RES} 0.6",
    ]
    assert len(candidate.commands) == 10 and candidate.unnamed_shares == []
    assert "ceph config set osd osd_mclock_scheduler_background_best_effort_wgt 2" in (
        candidate.commands
    )
    await world.put(candidate.name)
    assert len(cluster.options) == 10
    await world.back()
    assert cluster.options == {}


async def test_of_one_osd_the_shares_are_its_own() -> None:
    cluster = TriedCluster()
    cluster.shown["osd.1"] = {"osd_mclock_scheduler_background_recovery_res": "0.700000"}
    world = world_on(cluster, "osd.1/profile=custom osd.1/client_res=0.3")
    await world.check()
    assert "ceph config set osd.1 osd_mclock_scheduler_background_recovery_res 0.7" in (
        world.candidates[0].commands
    )


@pytest.mark.parametrize(
    ("version", "shown", "message"),
    [
        ("20.2.4", {CLIENT_RES: "0.600000"}, "client_res is 0.5 and 0.6 on different OSDs"),
        ("21.1.0", {}, "osd.0 does not say what its profile balanced gives; expected in --try"),
    ],
)
async def test_shares_that_are_not_known_must_be_named(
    version: str, shown: dict[str, str], message: str
) -> None:
    cluster = TriedCluster()
    cluster.version, cluster.shown["osd.1"] = version, shown
    with pytest.raises(SettingRefused, match=message):
        await world_on(cluster, "profile=custom recovery_res=0.2").check()
    words = [
        f"{cls}_{part}=1"
        for cls in ("client", "recovery", "best_effort")
        for part in ("res", "wgt", "lim")
    ]
    await world_on(cluster, " ".join(("profile=custom", *words))).check()


async def test_a_setting_is_put_in_force_and_taken_back_as_it_was() -> None:
    cluster = TriedCluster()
    cluster.options["osd", "osd_max_scrubs"] = "1"
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    assert cluster.options["osd", "osd_max_scrubs"] == "3"
    assert world.way_back["osd_max_scrubs=3"] == ["ceph config set osd osd_max_scrubs 1"]
    assert await world.trouble() == ""
    await world.back()
    assert cluster.options == {("osd", "osd_max_scrubs"): "1"}
    assert await world.trouble() == "" and world.journal.entries == []


async def test_what_happens_to_the_cluster_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    cluster.options["osd.1", "osd_mclock_max_capacity_iops_ssd"] = "7"  # an OSD's own
    assert await world.trouble() == ""
    cluster.options["osd", "osd_mclock_max_capacity_iops_ssd"] = "7"
    capacity = "osd osd_mclock_max_capacity_iops_ssd"
    assert await world.trouble() == f"someone has changed {capacity}"
    del cluster.options["osd", "osd_mclock_max_capacity_iops_ssd"]
    cluster.options["osd", "osd_max_scrubs"] = "9"
    assert await world.trouble() == "someone has changed osd osd_max_scrubs"
    cluster.options["osd", "osd_max_scrubs"] = "3"
    cluster.flags.add("noout")
    assert await world.trouble() == "someone has changed flags of the cluster: noout"
    cluster.flags.discard("noout")
    cluster.crush_version += 1
    assert await world.trouble() == "the CRUSH map has changed: data may move"
    cluster.crush_version -= 1
    cluster.osd_map[0]["in"] = 0
    assert await world.trouble() == "someone has set the weight of osd.0 to 0 (0: it is out)"
    cluster.osd_map[1]["up"] = 0
    assert await world.trouble() == "down: osd.1"
    cluster.osd_map[1]["up"] = 1
    cluster.osd_map[5] = cluster.osd_map[1]
    assert await world.trouble() == "it came up, and was not when the trial began: osd.5"
    cluster.fails["osd dump"] = CommandFailed("osd dump", -110, "timed out")
    said = []
    for now in (100.0, 108.0, 116.0):
        monkeypatch.setattr(world, "now", lambda now=now: now)
        said.append((await world.trouble()).partition(":")[0])
    assert said == ["", "", "the monitors did not answer"], "an election takes some seconds"


async def test_an_osd_that_goes_while_a_setting_is_put_in_force_is_named() -> None:
    class Goes(TriedCluster):
        async def command(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
            if prefix == "config get" and target == "osd.1":
                self.osd_map[1]["up"] = 0
                raise CommandFailed(prefix, -6, "no such device or address")
            return await super().command(prefix, target=target, **given)

    world = world_on(Goes(), "osd_max_scrubs=3")
    await world.check()
    with pytest.raises(SettingRefused, match=r"^down: osd\.1$"):
        await world.put("osd_max_scrubs=3")


async def test_a_setting_that_others_have_changed_is_left_and_the_trial_ends() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    cluster.options["osd", "osd_max_scrubs"] = "9"
    with pytest.raises(NotRestored, match="was set to 9 by someone else"):
        await world.back()
    assert await world.give_back() == [] and cluster.options["osd", "osd_max_scrubs"] == "9"
    assert world.way_back == {}
    assert world.left == [
        "osd osd_max_scrubs was set to 9 by someone else; the run had set it to 3"
    ]


async def test_at_the_end_all_that_is_still_changed_is_undone() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    assert await world.give_back() == []
    assert cluster.options == {}
    assert await world.give_back() == []


async def test_at_the_end_all_is_compared_with_what_was_before() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    await world.back()
    assert await world.give_back() == [] and world.left == [] and world.way_back
    cluster.options["osd", "osd_max_scrubs"] = "9"
    cluster.flags.add("noout")
    assert await world.give_back() == [] and world.way_back == {}
    assert world.left == [
        "osd osd_max_scrubs is 9, and was not set",
        "the flags are noout,sortbitwise, and were sortbitwise",
    ]
    cluster.fails["config dump"] = ClusterAway("timed out")
    await world.give_back()
    assert world.left == [
        "what is set was not compared with what was set before the trial: timed out"
    ]


async def test_a_way_back_that_is_stopped_does_not_leave_all_as_before() -> None:
    class Hangs(TriedCluster):
        async def command(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
            if prefix == "config rm":
                await asyncio.sleep(60)
            return await super().command(prefix, target=target, **given)

    world = world_on(Hangs(), "osd_max_scrubs=3")
    await world.check()
    await world.put("osd_max_scrubs=3")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(world.give_back(), 0.2)
    assert world.left == ["the way back was stopped; cephqos run --restore-only finishes it"]


async def test_only_a_new_alert_of_this_cluster_is_trouble() -> None:
    cluster, prometheus = TriedCluster(), FiringPrometheus()
    cluster.osd_map[0]["public_addr"] = "10.0.0.1:6801/17"
    prometheus.metadata = [
        ({"public_addr": "10.0.0.1", "cluster": "rook-ceph"}, 1.0),
        ({"public_addr": "10.9.9.9", "cluster": "another"}, 1.0),
    ]
    world = world_on(cluster, "same", prometheus=prometheus)
    await world.check()
    assert cluster.noted == [
        f"an alert that begins to fire ends this trial: of cluster {cluster.fsid} or rook-ceph, or"
        f" Ceph* without a cluster. Watched as long as there are new samples of {RECORDED}"
    ]
    assert await world.trouble() == ""
    before = list(prometheus.alerts)
    for labels, ends in (
        ({"alertname": "CephOSDDown", "cluster": "another"}, False),
        ({"alertname": "KubePodCrashLooping", "namespace": "shop"}, False),
        ({"alertname": "CephOSDDown", "cluster": "rook-ceph"}, True),
        ({"alertname": "CephHealthError"}, True),
        ({"alertname": "Slow", "cluster": cluster.fsid}, True),
    ):
        prometheus.alerts = [*before, (labels, 1.0)]
        said = await world.trouble()
        assert said == (f"an alert fires: {labels['alertname']}" if ends else ""), labels


async def test_an_alert_that_ended_and_begins_again_is_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prometheus, now = FiringPrometheus(), 1000.0
    monkeypatch.setattr(WatchedAlerts, "now", lambda self: now)
    prometheus.alerts = before = [({"alertname": "Slow", "cluster": TriedCluster.fsid}, 1.0)]
    world = world_on(TriedCluster(), "same", prometheus=prometheus)
    await world.check()
    assert await world.trouble() == ""
    for wait, alerts, said in (
        (30.0, [], ""),
        (30.0, before, ""),  # Prometheus has restarted
        (30.0, [], ""),
        (130.0, [], ""),
        (30.0, before, "an alert fires: Slow"),
    ):
        now += wait
        prometheus.alerts = alerts
        assert await world.trouble() == said, (now, said)


async def test_memory_that_cephadm_shares_out_is_no_trouble() -> None:
    class Tuned(TriedCluster):
        value = "4000000000"

        def _config_dump(self) -> list[dict[str, str]]:
            it = {"section": "osd", "name": "osd_memory_target", "mask": "host:a"}
            return [*super()._config_dump(), it | {"value": self.value}]

    cluster = Tuned()
    world = world_on(cluster, "osd_max_scrubs=3")
    await world.check()
    cluster.value = "3900000000"
    assert await world.trouble() == ""


async def test_a_prometheus_that_is_lost_or_sees_the_cluster_no_more_is_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prometheus, now = FiringPrometheus(), 1000.0
    monkeypatch.setattr(WatchedAlerts, "now", lambda self: now)
    world = world_on(TriedCluster(), "same", prometheus=prometheus)
    await world.check()
    prometheus.lost = True
    assert await world.trouble() == "", "for a moment"
    now += 16
    assert "Prometheus is lost: connection refused" in await world.trouble()
    prometheus.lost = False
    prometheus.ages[RECORDED][ChangedCluster.fsid] = 23.0
    assert await world.trouble() == ""
    prometheus.ages = {}
    now += 90
    assert await world.trouble() == "", "a manager may be another for a moment"
    now += 30
    assert "sees this cluster no more: the last osd:cephqos_instance" in await world.trouble()
    for ages in ({}, {RECORDED: {ChangedCluster.fsid: 130.0}}, {RECORDED: {"another": 1.0}}):
        prometheus.ages = ages
        with pytest.raises(UsageError, match="without them no alert would end the trial"):
            await world_on(TriedCluster(), "same", prometheus=prometheus).check()


async def test_an_osd_that_does_not_answer_is_said_to_be_silent() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "same")
    await world.check()
    reading = await world.read()
    assert (reading.silent, reading.osds[1].buckets) == ((), (0, 21))
    cluster.mute = {"osd.1"}
    reading = await world.read()
    assert reading.silent == (1,) and list(reading.osds) == [0]


async def test_osds_that_say_nothing_are_found_before_anything_is_changed() -> None:
    cluster = TriedCluster()
    cluster.fails["perf histogram dump"] = CommandFailed("perf histogram dump", -13, "no rights")
    with pytest.raises(ClusterUnfit, match=r"osd\.0, osd\.1 did not say .*: no rights \(-13\)"):
        await world_on(cluster, "same").check()


async def test_an_osd_that_hangs_makes_no_other_one_silent() -> None:
    class Hangs(TriedCluster):
        """As the connection is: osd.0 holds it up until its deadline."""

        def __init__(self) -> None:
            super().__init__()
            self.lock = asyncio.Lock()
            self.hangs = ""

        async def once(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
            try:
                async with asyncio.timeout(0.05), self.lock:
                    await asyncio.sleep(1 if target == self.hangs else 0)
            except TimeoutError as error:
                raise ClusterUnreachable(prefix) from error
            return await self.command(prefix, target=target, **given)

    cluster = Hangs()
    world = world_on(cluster, "same")
    await world.check()
    cluster.hangs = "osd.0"
    reading = await world.read()
    assert (reading.silent, list(reading.osds)) == ((0,), [1])


async def test_osds_that_hang_are_asked_last_and_hold_up_no_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hanging(TriedCluster):
        async def once(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
            if target in ("osd.0", "osd.1", "osd.2"):
                await asyncio.sleep(60)
            return await super().once(prefix, target=target, **given)

    monkeypatch.setattr(readers, "LOOK_SECONDS", 0.2)
    cluster: Any = Hanging()
    asked = OsdReaders([cluster, cluster])
    looks = [sorted(await asked.read(range(6))) for _ in range(3)]
    assert looks == [[], [3, 4, 5], [3, 4, 5]]


async def test_an_osd_that_stays_silent_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "same")
    await world.check()
    said = []
    for now, mute in ((0.0, True), (50.0, False), (55.0, True), (110.0, True), (116.0, True)):
        monkeypatch.setattr(world, "now", lambda now=now: now)
        cluster.mute = {"osd.1"} if mute else set()
        await world.read()
        said.append(await world.trouble())
    assert said == ["", "", "", "", "osd.1 has not answered for 1 min 1 s"]


def group(state: str, scrubbed: int, ended: str = "2026-11-28T00:00:00.000000+0000") -> Any:
    return {
        "pgid": "1.0",
        "state": state,
        "acting_primary": 0,
        "last_scrub_stamp": ended,
        "last_deep_scrub_stamp": "2026-11-27T00:00:00.000000+0000",
        "last_change": ended,
        "stat_sum": {"num_objects": 100, "num_bytes": 100},
        "objects_scrubbed": scrubbed,
    }


async def test_objects_are_counted_while_they_are_scrubbed_and_when_the_scrub_has_ended() -> None:
    cluster = TriedCluster()
    world = world_on(cluster, "same")
    await world.check()
    counted = []
    for state, scrubbed, ended in (("scrubbing", 10, 0), ("scrubbing", 40, 0), ("clean", 100, 1)):
        cluster.groups = [
            group(f"active+{state}", scrubbed, f"2026-11-28T0{ended}:00:00.000000+0000")
        ]
        counted.append((await world.read()).scrubbed)
    assert counted == [0, 30, 90]
    cluster.fails["pg ls"] = CommandFailed("pg ls", -110, "timed out")
    assert (await world.read()).scrubbed is None


async def test_violated_seconds_come_from_the_rules_and_are_not_known_without_prometheus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prometheus = FiringPrometheus()
    world = world_on(TriedCluster(), "same", prometheus=prometheus)
    await world.check()
    seconds = []
    for now, violated in ((10.0, 5.0), (13.0, 2.0), (16.0, 0.0)):
        monkeypatch.setattr(world, "now", lambda now=now: now)
        prometheus.violated = violated
        seconds.append((await world.read()).violated)
    assert seconds == [0.0, 6.0, 6.0]
    without = world_on(TriedCluster(), "same")
    await without.check()
    assert (await without.read()).violated is None
