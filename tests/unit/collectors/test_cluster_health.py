"""The cluster's own health checks, on recordings of three releases."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.recorded import RELEASES

from cephqos_exporter.cluster.health import election_families, health_families
from cephqos_exporter.cluster.replies import parse_status
from cephqos_exporter.labels import Labels, LabelText
from cephqos_exporter.not_understood import NotUnderstood

from ..osd_views import samples
from .cluster_replies import recorded

CHECK = "cephqos_cluster_health_check"


def shown(reply: Mapping[str, Any], found: NotUnderstood | None = None) -> dict[str, float]:
    not_understood = found or NotUnderstood()
    families = samples(health_families(parse_status(reply), Labels(LabelText("")), not_understood))
    assert found or not list(not_understood.take())
    return families


@pytest.mark.parametrize("release", RELEASES)
def test_each_failed_check_is_shown_with_its_count(release: str) -> None:
    status = recorded(release, "recovery", "status")
    found = shown(status)
    assert found[f'{CHECK}{{check="PG_DEGRADED",severity="warning"}}'] >= 1
    assert len(found) == len(status["health"]["checks"])


def test_an_error_is_one_and_a_muted_check_is_not_shown() -> None:
    status = recorded("reef", "recovery", "status")
    checks = status["health"]["checks"]
    checks["PG_DEGRADED"] |= {"severity": "HEALTH_ERR"}
    checks["POOL_APP_NOT_ENABLED"] |= {"muted": True}
    found = shown(status)
    assert f'{CHECK}{{check="PG_DEGRADED",severity="error"}}' in found
    assert not any("POOL_APP_NOT_ENABLED" in name for name in found)


@pytest.mark.parametrize("odd", [None, [], {"checks": []}, {"checks": {"X": {"severity": 1}}}])
def test_health_of_another_shape_is_absent_and_counted(odd: Any) -> None:
    not_understood = NotUnderstood()
    assert shown(recorded("reef", "idle", "status") | {"health": odd}, not_understood) == {}
    assert "reply" in dict(not_understood.take())


def elections(reply: Mapping[str, Any], odd: NotUnderstood) -> dict[str, float]:
    return samples(election_families(parse_status(reply), Labels(LabelText("")), odd))


def test_elections_of_monitors_are_counted_and_each_takes_two_epochs() -> None:
    status = recorded("reef", "idle", "status")
    odd = NotUnderstood()
    name = "cephqos_cluster_elections_total{}"
    before, after = (elections(status | {"election_epoch": it}, odd)[name] for it in (12, 16))
    assert after == before + 2
    assert elections({**status, "election_epoch": None}, odd) == {}
    assert not odd.found
    assert elections({**status, "election_epoch": "x"}, odd) == {}
    assert odd.found
