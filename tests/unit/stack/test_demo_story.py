"""What the demo says of an alert."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.errors import LabError
from cephqos_stack.demo import story
from cephqos_stack.demo.story import AlertWatch, NotifiedAlert

OSD_1 = {"alertname": "A", "severity": "critical", "ceph_daemon": "osd.1", "class": "client"}


def test_an_alert_is_told_with_its_summary_which_names_the_cause() -> None:
    summary = "client does not get its reservation (cause: device)"
    said = NotifiedAlert(OSD_1, {"summary": summary}).lines()
    assert said == ["FIRING (critical): A osd.1 client", f"  {summary}"]


async def test_an_alert_that_another_one_inhibits_is_not_told_as_resolved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    states = {"slow": "active"}

    async def fetch(_: str) -> bytes:
        return json.dumps(
            [
                {
                    "fingerprint": name,
                    "status": {"state": state},
                    "labels": {"alertname": name, "severity": "critical"},
                    "annotations": {},
                }
                for name, state in states.items()
            ]
        ).encode()

    monkeypatch.setattr(story, "fetch", fetch)
    watch = AlertWatch("http://a", told.append)
    assert [it.labels["alertname"] for it in await watch.look()] == ["slow"]
    states.update(slow="suppressed", violated="active")
    assert [it.labels["alertname"] for it in await watch.look()] == ["violated"]
    states.update(slow="active")
    del states["violated"]
    await watch.look()
    states.clear()
    assert await watch.look() == []
    assert [line.split(" after")[0].split(":")[0] for line in told] == [
        "FIRING (critical)",
        "FIRING (critical)",
        "RESOLVED",
        "RESOLVED",
    ]
    assert told[-2].endswith("violated cluster") and told[-1].endswith("slow cluster")


async def test_the_load_is_kept_until_an_osd_is_at_its_end_or_the_user_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[list[dict[str, list[str]]]] = [[], [], [{"value": ["0", "812.4"]}]]

    async def query(_: str) -> list[dict[str, list[str]]]:
        return answers.pop(0) if answers else []

    async def pause(*_: object) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(story, "_watch_for", pause)
    monkeypatch.setattr(story, "SATURATED_WITHIN", 0.2)
    stack: Any = SimpleNamespace(query=query)
    watch: Any = None
    assert await story._delivered(stack, watch) == 812
    with pytest.raises(
        LabError, match=r"no OSD was saturated within .*: try again when it has ended$"
    ):
        await story._delivered(stack, watch)
