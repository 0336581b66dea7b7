"""Why recovery waits, what takes settings back, and intervals of scrubs that differ."""

from typing import Any

import pytest

from cephqos_doctor.cli import CLUSTER_CHECKS
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import diagnose
from cephqos_doctor.recovery_facts import (
    OptionChange,
    RecoveryFacts,
    Slots,
    Stored,
    changes_of,
    gather,
    slots_of,
    stored_of,
)
from cephqos_exporter.ceph.monclient import CommandFailed

from .doctor_facts import found, mends

RESERVATIONS = {
    "local_reservations": {
        "max_allowed": 1,
        "min_priority": 0,
        "queues": [{"priority": 110, "items": [{"item": "2.1"}, {"item": "2.2"}]}],
        "in_progress": [{"item": "2.3"}],
    },
    "remote_reservations": {"max_allowed": 1, "min_priority": 0, "queues": [], "in_progress": []},
}
# The newest first, as `ceph config log` has it.
LOG = [
    {
        "version": 9,
        "timestamp": "2026-11-28T12:00:00.029000+0000",
        "name": "",
        "changes": [{"name": "osd/osd_max_backfills", "previous_value": "8", "new_value": "1"}],
    },
    {
        "version": 8,
        "timestamp": "2026-11-28T12:00:00.000000+0000",
        "name": "",
        "changes": [{"name": "osd/osd_max_backfills", "previous_value": "1", "new_value": "8"}],
    },
]


def facts(recovery: RecoveryFacts | None = None, **intervals: float) -> ClusterFacts:
    known = {(who, "osd_deep_scrub_interval"): days * 86400 for who, days in intervals.items()}
    return ClusterFacts(name="client.admin", status={"x": 1}, recovery=recovery, intervals=known)


def only(name: str, of: ClusterFacts) -> Any:
    [finding] = found(CLUSTER_CHECKS, of)[name]
    assert mends(finding)
    return finding


def test_the_osd_that_refuses_is_named_with_what_is_in_force_and_what_is_stored() -> None:
    recovery = RecoveryFacts(
        waiting=2,
        slots=[*slots_of("osd.3", RESERVATIONS), *slots_of("osd.4", {})],
        in_force={
            ("osd.3", "osd_max_backfills"): "1",
            ("osd.3", "osd_mclock_override_recovery_settings"): "false",
            ("osd.3", "osd_mclock_profile"): "balanced",
        },
        stored=stored_of(
            [
                {"section": "osd", "mask": "", "name": "osd_max_backfills", "value": "8"},
                {"section": "mon", "mask": "", "name": "mon_allow_pool_delete", "value": "true"},
            ]
        ),
        changes=[OptionChange("2026-11-28T11:00:00.0+0000", "osd", "osd_max_backfills", None, "8")],
        by={"osd_max_backfills": "client.admin"},
    )
    finding = only("recovery-slots", facts(recovery))
    assert finding.subject == "osd.3"
    assert finding.problem == (
        "2 placement groups wait for its local slots: it grants 1 at a time (osd_max_backfills is 1"
        " in force; 8 is stored in section osd since 2026-11-28T11:00:00 by client.admin, and"
        " mClock overrides it while osd_mclock_override_recovery_settings is false;"
        " profile balanced)"
    )


def test_an_osd_with_a_free_slot_refuses_nothing() -> None:
    free = RecoveryFacts(waiting=2, slots=[Slots("osd.3", "local", 0, 1, 2)])
    assert "recovery-slots" not in found(CLUSTER_CHECKS, facts(free))


def test_a_setting_that_is_taken_back_at_once_is_to_be_set_elsewhere() -> None:
    finding = only("settings-kept", facts(RecoveryFacts(changes=changes_of(LOG))))
    assert finding.subject == "osd/osd_max_backfills"
    assert "set to 8 at 2026-11-28T12:00:00 and taken back 0.029 s later" in finding.problem
    assert "cephcluster" in finding.mend


def test_mclock_takes_back_what_18_2_logs_as_removed_by_an_osd() -> None:
    # As a lab with 18.2.7 logged it after `ceph config set osd osd_max_backfills 8`.
    log = [
        {
            "timestamp": "2026-11-28T18:33:47.816202+0000",
            "changes": [{"name": "osd/osd_max_backfills", "previous_value": "8"}],
        },
        {
            "timestamp": "2026-11-28T18:33:47.778393+0000",
            "changes": [{"name": "osd/osd_max_backfills", "new_value": "8"}],
        },
        {"timestamp": "0.000000", "changes": []},
    ]
    by = {"osd_max_backfills": "osd.0"}
    finding = only("settings-kept", facts(RecoveryFacts(changes=changes_of(log), by=by)))
    assert "taken back 0.0378 s later by osd.0: mClock undoes it" in finding.problem
    assert finding.mend.startswith("ceph config set osd osd_mclock_override_recovery_settings true")


def test_a_setting_that_an_operator_takes_back_after_an_hour_is_his_own_decision() -> None:
    later = [LOG[0] | {"timestamp": "2026-11-28T13:00:00.000000+0000"}, LOG[1]]
    recovery = RecoveryFacts(changes=changes_of(later))
    assert "settings-kept" not in found(CLUSTER_CHECKS, facts(recovery))


def test_an_interval_that_only_osds_have_is_found() -> None:
    finding = only("scrub-intervals-agree", facts(osd=28, mgr=7))
    assert "28 days for OSDs, and 7 days for the manager" in finding.problem
    assert "ceph config set global osd_deep_scrub_interval 2419200" in finding.mend
    for alike in (facts(osd=28, mgr=28), facts(osd=7, mgr=28), facts(osd=28)):
        assert "scrub-intervals-agree" not in found(CLUSTER_CHECKS, alike)


def test_a_key_that_may_not_ask_skips_what_needs_it() -> None:
    skipped = dict(diagnose("it", CLUSTER_CHECKS, facts()).skipped)
    assert "needs client.admin, or --try-powers" in skipped["recovery-slots"]
    assert not stored_of(None)
    assert not changes_of([{"changes": 1}])
    assert list(slots_of("osd.1", None)) == []


class Client:
    """A cluster in which two placement groups wait for osd.3; osd.4 hangs."""

    async def command(self, prefix: str, *, target: str, within: float, **_: Any) -> Any:
        assert within <= 10
        if target == "osd.4":
            raise CommandFailed(prefix, -110, "timed out")
        return {
            "config log": LOG,
            "log last": [
                {
                    "message": "from='client.7 -' entity='client.admin' cmd='[{\"prefix\":"
                    ' "config set", "who": "osd", "name": "osd_max_backfills"}]\': finished'
                }
            ],
            "pg ls": {"pg_stats": [{"up": [3, 4, 2147483647], "acting": [3]}]},
            "dump_recovery_reservations": RESERVATIONS,
            "config get": {"osd_max_backfills": "1"},
            "config dump": [
                {"section": "osd", "mask": "", "name": "osd_max_backfills", "value": "8"}
            ],
        }.get(prefix)


@pytest.mark.parametrize("count", [0, 2])
async def test_osds_are_asked_only_while_placement_groups_wait(count: int) -> None:
    states = [{"state_name": "active+remapped+backfill_wait", "count": count}]
    client: Any = Client()
    recovery = await gather(client, {"pgmap": {"pgs_by_state": states}})
    assert recovery.by == {"osd_max_backfills": "client.admin"}
    assert [slots.osd for slots in recovery.slots if slots.refused] == ["osd.3"] * (count > 0)
    assert recovery.stored == ([Stored("osd", "", "osd_max_backfills", "8")] if count else ())
