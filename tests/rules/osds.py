"""Cases of the alerts that count OSDs: one for the cluster, which names the worst of them.

They begin at the series of single OSDs, whose own cases say when these are there.
"""

from typing import Final

from tests.findings import EVERY_FINDING

from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.settings import WINDOWS
from cephqos_base.recorded import PerOsd

from .cases import RuleCase, firing, silent
from .series import CLUSTER, Series, flat, merged

_BEGIN: Final = 10  # minutes
_LASTS: Final = 30
_PAUSE: Final = 20
# Recorded once a minute by a slow group, so the series of a case has the same distance.
_STEP: Final = 60


def _series(finding: OsdFinding, *values: str) -> Series:
    own = {"finding": finding.name.removeprefix("CephQos"), **finding.labels}
    by = dict.fromkeys(finding.by, "x")
    return merged(
        *(
            flat(PerOsd.FINDING, value, cluster=CLUSTER, ceph_daemon=f"osd.{i}", **own, **by)
            for i, value in enumerate(values)
        )
    )


def _case(finding: OsdFinding) -> list[RuleCase]:
    hold = WINDOWS[finding.window] / 60 if finding.window else 0
    labels = {"cluster": CLUSTER, "severity": finding.urgency.severity, **finding.labels}
    fired = {**labels, **dict.fromkeys(finding.by, "x")}
    kept = finding.keep / 60
    pause = min(_PAUSE, int(kept) - 2)  # in which it goes on
    ends = _BEGIN + _LASTS + kept
    what = f"{finding.name}{''.join(finding.labels.values())}"
    said: dict[str, object] = {"alert": finding.name, "group": "osds", "interval": _STEP}
    cases = [
        RuleCase(
            name=f"{what}: many OSDs are one alert, which lasts while some of them come and go",
            series=_series(
                finding,
                f"_x{_BEGIN} 5x{_LASTS - 1} stale",
                f"_x{_BEGIN} 3x{_LASTS - 1} stale _x{pause} 3x{_LASTS - 1} stale",
            ),
            moments=(
                silent(_BEGIN - 1),
                *((silent(_BEGIN + 0.8 * hold - 2),) if hold else ()),
                firing(_BEGIN + 0.8 * hold, fired),
                firing(_BEGIN + _LASTS + pause, fired),
                firing(ends, fired),
                silent(ends + _LASTS + pause + 2),
            ),
            **said,  # type: ignore[arg-type]
        )
    ]
    if hold:
        cases.append(
            RuleCase(
                name=f"{what}: what lasts on no OSD is no alert, though there is always one",
                series=_series(
                    finding,
                    *(f"_x{3 * i} 5x2 stale _x{15 - 3 * i} 5x2 stale" for i in range(5)),
                ),
                moments=(silent(15), silent(30)),
                **said,  # type: ignore[arg-type]
            )
        )
    return cases


CASES: Final = [case for finding in EVERY_FINDING for case in _case(finding)]
