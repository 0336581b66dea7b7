"""What a warning without a cause says on erasure-coded pools, as Prometheus fills it in."""

from pathlib import Path
from typing import Final

import pytest

from .rendered import OF_OSD, description_of, rendered

_CANNOT: Final = "CephQosReservationViolatedCanWait"
_OSD: Final = 'cluster="c1",ceph_daemon="osd.3"'
_UNKNOWN: Final = f'osd_class:cephqos_main_cause{{{_OSD},class="client",cause="unknown"}}'
_DEVICE: Final = _UNKNOWN.replace("unknown", "device")
_CODED: Final = f"cephqos_qos_delivered_is_lower_bound{{{_OSD}}}"
_READS: Final = f'cephqos_ops_sampled_wait_seconds_total{{{_OSD},kind="ec_read",event="execute"}}'
_SAID: Final = "Cause not known: on its erasure-coded pools, reads of recovery go ahead of clients"


@pytest.mark.parametrize(
    ("looked_up", "said", "not_said"),
    [
        ({_UNKNOWN: "1x30", _CODED: "1x30"}, _SAID, "in progress:"),
        (
            {_UNKNOWN: "1x30", _CODED: "1x30", _READS: "0+45x30"},
            "Reads for other OSDs in progress: 3.0 on average.",
            "Likely cause",
        ),
        ({_UNKNOWN: "1x30", _CODED: "0x30"}, "Look at this first", "erasure"),
        ({_DEVICE: "1x30", _CODED: "1x30"}, "Likely cause: device", "erasure"),
    ],
)
def test_reads_of_recovery_are_named_where_nothing_else_says_why(
    looked_up: dict[str, str], said: str, not_said: str, tmp_path: Path
) -> None:
    labels = {**OF_OSD, "class": "client"}
    text = rendered(
        description_of(_CANNOT), labels, 500, looked_up, tmp_path, name=_CANNOT, at="5m"
    )
    assert said in text
    assert not_said not in text
