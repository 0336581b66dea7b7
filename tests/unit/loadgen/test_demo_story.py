"""What the demo says of an alert."""

import pytest

from cephqos_loadgen.demo.story import NotifiedAlert

OSD_1 = {"alertname": "A", "severity": "page", "ceph_daemon": "osd.1", "class": "client"}


@pytest.mark.parametrize(
    ("labels", "headline"),
    [
        ({"cause": "device"}, "FIRING (page): A osd.1 client, cause device"),
        (
            {"cause": "replica", "by": "osd.2"},
            "FIRING (page): A osd.1 client, cause replica by osd.2",
        ),
        ({"cause": "replica", "by": "osd.1"}, "FIRING (page): A osd.1 client"),
    ],
)
def test_an_alert_names_its_cause_and_who_that_is_unless_it_is_itself(
    labels: dict[str, str], headline: str
) -> None:
    said = NotifiedAlert({**OSD_1, **labels}, {"summary": "others wait for it"}).lines()
    assert said == [headline, "  others wait for it"]
