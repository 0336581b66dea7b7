"""Recorded by an alert's webhook, and fetched: a real cluster by a real Alertmanager, and a night
that the rules are tested on, which is replayed.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recording_exporters import cephqos, recording_exporter
from tests.rules.qos import RESERVATION
from tests.rules.series import STEP
from tests.waiting import until

from cephqos_alerts.output.alertmanager import RECEIVERS, alertmanager_config
from cephqos_base import textfile
from cephqos_base.errors import UsageError
from cephqos_base.recorded import PerClass
from cephqos_base.servers import Address, HttpServer, fetch
from cephqos_loadgen.archive.reader import open_archive, problems
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.programs import find_program
from cephqos_loadgen.run_recording.columns import parse, render
from cephqos_stack.replay.gather import evaluated
from cephqos_stack.stack import Stack, StackSpec

START = 1_795_000_000 // STEP * STEP
# Its alert is silent at minute 13 and fires at 14.75, cause device, as promtool says.
(NIGHT,) = [case for case in RESERVATION if case.name.startswith("a device that became slow is")]


def values(text: str) -> Iterator[float | None]:
    """promtool's notation of samples: `1+2x3`, `4x5`, `_x6`, `7`."""
    for part in text.split():
        one, _, more = part.partition("x")
        count = int(more or 0)
        if one == "_":
            yield from [None] * max(count, 1)
            continue
        found = re.fullmatch(r"(-?[\d.]+(?:e[+-]?\d+)?)(?:\+(.+))?", one)
        assert found, one
        begin, step = found.groups()
        yield from (float(begin) + float(step or 0) * n for n in range(count + 1))


def as_exported(series: str) -> str:
    """Without the labels that Prometheus adds."""
    name, labels = parse(series)
    return render(name, {k: v for k, v in labels.items() if k not in ("job", "instance")})


def alert() -> dict[str, object]:
    labels = {"alertname": NIGHT.alert, "ceph_daemon": "osd.0", "severity": "critical"}
    started = "2026-11-18T12:11:00Z"
    return {"status": "firing", "fingerprint": "5f1d", "startsAt": started, "labels": labels}


async def test_the_rules_say_on_the_replay_what_they_said_that_night(tmp_path: Path) -> None:
    try:
        for name in ("promtool", "prometheus"):
            find_program(name)
    except UsageError as error:
        pytest.skip(str(error))
    shown = {as_exported(name): list(values(text)) for name, text in NIGHT.series.items()}
    async with recording_exporter(tmp_path / "recorded", minutes=30) as exporter:
        for step in range(round(18 * 60 / STEP)):
            page = {name: found[step] for name, found in shown.items() if step < len(found)}
            known = {name: value for name, value in page.items() if value is not None}
            await exporter.record(START + step * STEP, known)
            if step * STEP == 14.75 * 60:
                async with HttpServer(Address(exporter.address)) as server:
                    status, body = await server.ask("POST", "/-/record", json={"alerts": [alert()]})
                assert status == 200 and json.loads(body)["kept"]
        argv = ("--exporter", exporter.address, "--to", str(tmp_path / "runs"))
        assert await cephqos("record", "fetch", *argv) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    archive = open_archive(folder)
    wanted = (PerClass.VIOLATED, PerClass.MAIN_CAUSE)
    async with asyncio.timeout(300):
        found = await evaluated(archive, wanted, lambda _: None)

    def at(minute: float, name: str) -> list[dict[str, str]]:
        """What was recorded last then: promtool evaluates at moments of its own."""
        time = round((START + minute * 60) * 1000)
        each = [(parse(series), samples) for series, samples in found.series.items()]
        return [
            labels
            for (series, labels), samples in each
            if series == name
            and labels["class"] == "client"
            and any(samples.get(it) for it in range(time - STEP * 1000, time))
        ]

    assert at(7, PerClass.VIOLATED) == []
    for minute in (14.75, 17):
        assert [it["ceph_daemon"] for it in at(minute, PerClass.VIOLATED)] == ["osd.0"]
        assert [it["cause"] for it in at(minute, PerClass.MAIN_CAUSE)] == ["device"]


class Recording(Stack):
    """Alertmanager posts to the exporter, as docs/install/alertmanager.md has it."""

    def _write_files(self) -> None:
        super()._write_files()
        hook = {"url": f"{self.exporter_url}/-/record", "send_resolved": False, "max_alerts": 10}
        own: list[dict[str, Any]] = [{"name": name} for name in RECEIVERS]
        own[RECEIVERS.index("watchdog")]["webhook_configs"] = [hook]
        text = alertmanager_config(self.spec.rule_settings, receivers=own)
        textfile.write(self.dir / "alertmanager.yml", text)


async def test_an_alert_of_a_real_cluster_keeps_what_was_before_it(
    small_lab: RunningLab, tmp_path: Path
) -> None:
    """CephQosWatchdog fires whatever happens, so nothing has to be staged."""
    options = ("--recorder.minutes=1", f"--recorder.path={tmp_path / 'recorded'}")
    spec = StackSpec(name="recorder", cluster_role=False, exporter_options=options)
    async with Recording(small_lab, spec) as stack:

        async def kept() -> bool:
            page = (await fetch(f"{stack.exporter_url}/metrics")).decode()
            pages = re.search(r"\ncephqos_recorder_pages_total (\d+)\n", page)
            return (
                "\ncephqos_recorder_pieces 1\n" in page and pages is not None and int(pages[1]) > 2
            )

        await until(kept, "a piece with pages", 240)
        argv = ("--exporter", stack.exporter_url, "--to", str(tmp_path / "runs"))
        assert await cephqos("record", "fetch", *argv) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    archive = open_archive(folder)
    assert list(problems(archive)) == []
    (repeat,) = archive.repeats
    reasons = [event["reason"] for event in repeat.events() if event["event"] == "kept"]
    assert reasons == ["CephQosWatchdog"]
    up = next(it for it in repeat.metrics().series if it.startswith("cephqos_daemon_up{"))
    assert parse(up)[1]["ceph_daemon"] == "osd.0"
    assert await cephqos("report", str(folder), "--out", str(tmp_path / "report")) == 0
