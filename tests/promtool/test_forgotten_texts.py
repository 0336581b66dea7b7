"""What a forgotten flag costs, and for whom blocked operations wait, as Prometheus fills it in."""

from pathlib import Path
from typing import Final

import pytest

from .rendered import description_of, rendered

_DOWN: Final = {
    'cephqos_cluster_osd_up{cluster="c1",ceph_daemon="osd.1"}': "0x9",
    'cephqos_cluster_osd_up{cluster="c1",ceph_daemon="osd.2"}': "1x9",
}
_TO_RECOVER: Final = {
    'cephqos_recovery_pool_degraded_objects{cluster="c1",pool="a"}': "30x9",
    'cephqos_recovery_pool_misplaced_objects{cluster="c1",pool="a"}': "10x9",
    'cephqos_recovery_pool_misplaced_objects{cluster="c2",pool="a"}': "70x9",
}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("noout", "its data has fewer copies. OSDs that are down now: 1."),
        ("norebalance", "stay as they are. Copies that wait for it now: 40."),
        ("nodeep-scrub", "Bad copies are not found. Take it back"),
        ("osd_mclock_scheduler_client_res", "less reserved than with any built-in profile."),
        ("osd_max_backfills", "may take from clients whenever they run."),
    ],
)
def test_the_text_says_what_the_setting_costs_now(setting: str, said: str, tmp_path: Path) -> None:
    text = rendered(
        description_of("CephQosSettingForgotten"),
        {"cluster": "c1", "setting": setting},
        20_000,
        {**_DOWN, **_TO_RECOVER},
        tmp_path,
        name="CephQosSettingForgotten",
    )
    assert said in text
    assert "has been set for 5h 33m 20s" in text


_FINDING: Final = (
    'osd:cephqos_finding:value{finding="OperationsBlocked",cluster="c1",ceph_daemon="osd.10"}'
)
_WAITS: Final = (
    "cephqos_ops_sampled_wait_seconds_total"
    '{cluster="c1",ceph_daemon="osd.10",kind="client",event="subops",peer="osd.6"}'
)
_CAUSE: Final = (
    'osd_class:cephqos_main_cause{cluster="c1",ceph_daemon="osd.10",class="client",cause="device"}'
)


@pytest.mark.parametrize(
    ("looked_up", "said"),
    [
        ({_WAITS: "0+30x30"}, "Likely cause: osd.6, for which their writes wait. Begin there."),
        ({_WAITS: "0+30x30", _CAUSE: "1x30"}, "Likely cause: device."),
        ({}, "Likely cause: none that shows in the OSDs"),
    ],
)
def test_blocked_operations_name_the_cause_or_the_osd_for_which_they_wait(
    looked_up: dict[str, str], said: str, tmp_path: Path
) -> None:
    text = rendered(
        description_of("CephQosOperationsBlocked"),
        {"cluster": "c1"},
        1,
        {_FINDING: "3x30", **looked_up},
        tmp_path,
        name="CephQosOperationsBlocked",
        at="5m",
    )
    assert said in text
