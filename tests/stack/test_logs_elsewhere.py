"""Recorded log lines as they stand in the journal and in the output of containers: through a real
collector they arrive as those of files do, and in a Loki that another collector feeds the rules and
dashboards find them by its labels."""

import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.log_pipeline import TriedPipeline
from tests.recorded import RELEASES
from tests.stack.log_files import entries, need_tools

from cephqos_alerts.output.build import log_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.other_logs import OtherLogs
from cephqos_loadgen.processes import in_background
from cephqos_loadgen.programs import free_ports
from cephqos_stack.logs import COLLECTOR_CONFIG, COLLECTOR_GATES, LogSpec
from cephqos_stack.tools import find_tool

pytestmark = pytest.mark.full
RECORDED: Final = Path("tests/recordings/logs")
JOURNAL: Final = COLLECTOR_CONFIG.with_name("journal.yaml")
FSID: Final = "01234567-89ab-cdef-0123-456789abcdef"
OSDS: Final = ("osd.0", "osd.1", "osd.2")
_ENTRY: Final = re.compile(r"(?s)(\S+) ([0-9a-f]+) +(-?\d+) (.*)")


class Arrived(NamedTuple):
    """An entry, as Loki gets it."""

    cluster: str
    log: str
    daemon: str
    severity: str
    level: str
    text: str


async def arrived(wanted: int, folder: Path, **variables: str) -> list[Arrived]:
    """What the collector sends: so many entries, or those of half a minute."""
    program = find_tool("cephqos-collector")
    if program is None:
        pytest.skip("no cephqos-collector: `make tools`")
    got: list[Arrived] = []

    async def take(request: web.Request) -> web.Response:
        for resource in (await request.json())["resourceLogs"]:
            labels = _attributes(resource["resource"])
            for scope in resource["scopeLogs"]:
                got.extend(_entry(labels, record) for record in scope["logRecords"])
        return web.json_response({})

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/otlp/v1/logs", take)
    [port] = free_ports(1)
    async with TestServer(app) as loki:
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "LOKI_URL": f"http://{loki.host}:{loki.port}",
            "COLLECTOR_STATE": str(folder / "state"),
            "COLLECTOR_HEALTH": f"127.0.0.1:{port}",
            "CEPH_CLUSTER": FSID,
            "CEPH_LOGS": str(folder / "none"),
            **variables,
        }
        configs = (
            [COLLECTOR_CONFIG, JOURNAL] if "COLLECTOR_JOURNAL" in variables else [COLLECTOR_CONFIG]
        )
        argv = [str(program), *(f"--config={it.absolute()}" for it in configs), COLLECTOR_GATES]
        argv.append("--config=yaml:exporters::otlp_http::encoding: json")
        async with in_background(argv, folder / "collector.out", environment=environment):
            ends = time.monotonic() + 60
            while len(got) < wanted and time.monotonic() < ends:
                await asyncio.sleep(0.2)
            await asyncio.sleep(2)  # for what should not come
    return got


def _attributes(of: Any) -> dict[str, str]:
    return {it["key"]: str(it["value"].get("stringValue")) for it in of.get("attributes", ())}


def _entry(labels: dict[str, str], record: Any) -> Arrived:
    own = _attributes(record)
    return Arrived(
        cluster=labels.get("cluster", ""),
        log=labels.get("log", ""),
        daemon=own.get("ceph_daemon", ""),
        severity=labels.get("severity", ""),
        level=own.get("level", ""),
        text=str(record["body"]["stringValue"]).rstrip(),
    )


def recorded(release: str) -> dict[str, list[str]]:
    """Entries by daemon, as they stand in its file."""
    return {osd: entries((RECORDED / release / f"ceph-{osd}.log").read_text()) for osd in OSDS}


async def of_files(release: str, folder: Path) -> list[Arrived]:
    folder.mkdir()
    (folder / "logs").mkdir()
    for osd in OSDS:
        shutil.copy(RECORDED / release / f"ceph-{osd}.log", folder / "logs")
    wanted = sum(map(len, recorded(release).values()))
    return await arrived(wanted - 10, folder, CEPH_LOGS=str(folder / "logs"))


@pytest.mark.parametrize("release", RELEASES)
async def test_the_output_of_containers_arrives_as_files_do(release: str, tmp_path: Path) -> None:
    pods = tmp_path / "pods"
    for osd in OSDS:
        number = osd.removeprefix("osd.")
        pod = pods / f"rook-ceph_rook-ceph-osd-{number}-7679fc657f-b2srh_0a1b2c3d" / "osd"
        pod.mkdir(parents=True)
        text = (RECORDED / release / f"ceph-{osd}.log").read_text()
        (pod / "0.log").write_text("".join(map(_wrapped, text.splitlines())))
    other = pods / "rook-2_rook-ceph-osd-0-7679fc657f-b2srh_0a1b2c3d" / "osd"
    other.mkdir(parents=True)
    line = "2026-11-22T00:30:00.123+0000 7f5506426880  0 of another cluster"
    (other / "0.log").write_text(_wrapped(line))
    files = await of_files(release, tmp_path / "files")
    containers = await arrived(
        len(files), tmp_path, CEPH_PODS=str(pods), CEPH_NAMESPACE="rook-ceph"
    )
    assert files
    assert sorted(containers) == sorted(files)


def _wrapped(line: str) -> str:
    """A line as containerd writes it, of a daemon that Rook has told to begin with `debug`. A long
    line is in two parts; a second part that begins with a blank would lose it."""
    begins = "debug " if re.match(r"\d{4}-\d\d-\d\dT|--- begin dump", line) else ""
    stamp = "2026-11-22T00:30:00.123456789Z stderr"
    parts = re.fullmatch(r"(.{200}\S)(\S.*)", begins + line)
    if parts:
        return f"{stamp} P {parts[1]}\n{stamp} F {parts[2]}\n"
    return f"{stamp} F {begins}{line}\n"


@pytest.mark.parametrize("release", RELEASES)
async def test_the_journal_arrives_with_the_severity_of_files(release: str, tmp_path: Path) -> None:
    lines = [
        _in_journal(osd, *match.groups())
        for osd, texts in recorded(release).items()
        for entry in texts
        if (match := _ENTRY.fullmatch(entry))
    ]
    journal = await arrived(len(lines) - 10, tmp_path, **_journal_of(lines, tmp_path))
    files = await of_files(release, tmp_path / "files")
    # The journal has no dump of recent events, and time and thread are no part of the text.
    expected = [it._replace(text=match[4]) for it in files if (match := _ENTRY.fullmatch(it.text))]
    assert expected
    assert sorted(journal) == sorted(expected)


async def test_what_an_osd_wrote_to_a_journal_arrives(tmp_path: Path) -> None:
    """As an OSD of 20.2.4 sent it to journald; _CMDLINE and _SYSTEMD_UNIT, which journald adds, are
    those of cephadm."""
    lines = (RECORDED / "journal" / "osd.7.json").read_text().splitlines()
    got = await arrived(len(lines), tmp_path, **_journal_of(lines, tmp_path))
    assert len(got) == len(lines)
    assert {(it.cluster, it.log, it.daemon) for it in got} == {(FSID, "osd", "osd.7")}
    assert [it.severity for it in got if "can't open ceph.conf" in it.text] == ["error"] * 4
    assert [it.severity for it in got if it.text.startswith("ceph version")] == ["info"] * 2


async def test_the_cluster_log_in_the_journal_is_one_of_its_own(tmp_path: Path) -> None:
    common = {"SYSLOG_IDENTIFIER": "ceph-mon", "_CMDLINE": "/usr/bin/ceph-mon -n mon.a -f"}
    common |= {"TIMESTAMP": "1795902388240924196", "CEPH_NAME": "osd.3", "CEPH_SEQ": "7"}
    lines = [
        json.dumps(_stamped(common | {"CEPH_CHANNEL": channel, "PRIORITY": prio, "MESSAGE": text}))
        for channel, prio, text in (
            ("cluster", "4", "3 slow requests"),
            ("cluster", "3", "2.5 deep-scrub 3 errors"),
            ("audit", "6", "cmd=[{'prefix': 'config-key set'}]: dispatch"),
        )
    ]
    got = await arrived(2, tmp_path, **_journal_of(lines, tmp_path))
    assert sorted((it.log, it.daemon, it.severity, it.text) for it in got) == [
        ("cluster", "osd.3", "error", "2.5 deep-scrub 3 errors"),
        ("cluster", "osd.3", "warning", "3 slow requests"),
    ]


def _in_journal(osd: str, _: str, thread: str, level: str, message: str) -> str:
    """An entry of a file as an OSD of 20.2.4 gives it to journald."""
    entry = {"SYSLOG_IDENTIFIER": "ceph-osd", "PRIORITY": "3" if level == "-1" else "5"}
    entry |= {"CEPH_PRIO": level, "THREAD": thread.zfill(16), "MESSAGE": message}
    entry |= {"_CMDLINE": f"/usr/bin/ceph-osd -n {osd} -f --setuser ceph"}
    entry |= {"_SYSTEMD_UNIT": f"ceph-{FSID}@{osd}.service"}
    return json.dumps(_stamped(entry))


def _stamped(entry: dict[str, str]) -> dict[str, str]:
    return entry | {"__REALTIME_TIMESTAMP": "1795902388066038", "__CURSOR": "s=1"}


def _journal_of(lines: list[str], folder: Path) -> dict[str, str]:
    """A `journalctl` that prints these, whatever it is asked for."""
    (folder / "journal.json").write_text("".join(f"{line}\n" for line in lines))
    script = folder / "journalctl"
    script.write_text(f"#!/bin/sh\ncat {folder}/journal.json\nexec sleep 300\n")
    script.chmod(0o755)
    return {"COLLECTOR_JOURNAL": str(folder)}


# What the rules find in the recorded lines of a release. 16.2 has no limits for its benchmark, and
# reverts in silence.
FOUND: Final = {
    "CephQosHeartbeatMissed": set(OSDS),
    "CephQosDaemonCrashed": {"osd.1", "osd.2"},
    "CephQosSlowRequestBurst": {"osd.1"},
    "CephQosScrubErrors": {"osd.2"},
    "CephQosBenchmarkRejected": set(OSDS),
    "CephQosSettingReverted": {"osd_max_backfills"},
}
_DIFFERENT: Final = {
    "pacific": {
        "CephQosScrubErrors": {"osd.1"},
        "CephQosBenchmarkRejected": set[str](),
        "CephQosSettingReverted": set[str](),
    },
    "reef": {"CephQosSlowRequestBurst": {"osd.0"}},
}
# Lines of others. A monitor repeats what OSDs say.
_BESIDE: Final = {
    "mon.1": "cluster [WRN] OSD bench result of 7.0 IOPS exceeded the threshold limit of 3.0",
    "osd.11": "log_channel(cluster) log [DBG] : 2.1 scrub ok",
}


def _of_journal(entry: str) -> list[str]:
    """As the journal of a host has it: without time, thread and level, and without the dump of
    recent events."""
    match = _ENTRY.fullmatch(entry)
    return [match[4]] if match else []


def _of_container(entry: str) -> list[str]:
    """As a collector reads it from a pod of Rook: each line is one of its own."""
    return f"debug {entry}".splitlines()


@dataclass(frozen=True)
class ElsewhereCase:
    """Lines of daemons in a Loki that another collector feeds."""

    logs: OtherLogs
    daemon: str  # the value of the label, with KIND and ID
    form: Callable[[str], list[str]]
    cluster: str = ""  # that rules give their alerts

    def streams(self, release: str) -> Iterator[dict[str, Any]]:
        written = {
            osd: [it for text in texts for it in self.form(text)]
            for osd, texts in recorded(release).items()
        }
        given = dict(re.findall(r'(\w+)="([^"]*)"', self.logs.selector))
        begin = time.time_ns() - 10**9
        for name, lines in [*written.items(), *((it, [said]) for it, said in _BESIDE.items())]:
            kind, _, number = name.partition(".")
            value = self.daemon.replace("KIND", kind).replace("ID", number)
            yield {
                "stream": given | {"release": release, self.logs.daemon_label: value},
                "values": [[str(begin + at), line] for at, line in enumerate(lines)],
            }

    def of_release(self, query: str, release: str) -> str:
        here = f'{self.logs.selector.removesuffix("}")}, release="{release}"}}'
        assert self.logs.selector in query
        return query.replace(self.logs.selector, here)


ELSEWHERE: Final = {
    "cephadm": ElsewhereCase(
        OtherLogs('{job="journal"}', "unit"), f"ceph-{FSID}@KIND.ID.service", _of_journal, FSID
    ),
    "packages": ElsewhereCase(
        OtherLogs('{job="journal"}', "unit"), "ceph-KIND@ID.service", _of_journal
    ),
    "rook": ElsewhereCase(
        OtherLogs('{namespace="rook-ceph"}', "pod"),
        "rook-ceph-KIND-ID-7679fc657f-b2srh",
        _of_container,
    ),
    "alike": ElsewhereCase(
        OtherLogs('{namespace="rook-ceph"}', "ceph_daemon"), "KIND.ID", _of_container
    ),
}


@pytest.mark.parametrize("case", ELSEWHERE.values(), ids=ELSEWHERE)
async def test_rules_and_dashboards_read_the_labels_of_another_collector(
    case: ElsewhereCase, tmp_path: Path
) -> None:
    need_tools()
    rules = log_rules(RuleSettings(logs=case.logs))
    loki = TriedPipeline(LogSpec(folder=tmp_path, logs=tmp_path, cluster="", rules=rules))
    await loki.start_loki()
    try:
        streams = [stream for release in RELEASES for stream in case.streams(release)]
        async with aiohttp.ClientSession() as session:
            url = f"{loki.loki_url}/loki/api/v1/push"
            async with session.post(url, json={"streams": streams}) as answer:
                assert answer.status == 204, await answer.text()
        for release in RELEASES:
            assert await _found(loki, rules, case, release) == FOUND | _DIFFERENT.get(release, {})
            panel = case.logs.of_osd_in_dashboard()
            panel = panel.replace("$cluster", FSID).replace("${osd:raw}", "osd.1")
            written = sum(len(case.form(text)) for text in recorded(release)["osd.1"])
            assert await loki.count(case.of_release(panel, release)) == written
    finally:
        await loki.stop_loki()


async def _found(
    loki: TriedPipeline, rules: str, case: ElsewhereCase, release: str
) -> dict[str, set[str]]:
    """By alert, the OSDs or options that it is about."""
    found: dict[str, set[str]] = {}
    for rule in yaml.safe_load(rules)["groups"][0]["rules"]:
        about = found.setdefault(rule["alert"], set())
        for row in await loki.query(case.of_release(rule["expr"], release)):
            labels = row["metric"]
            assert labels.get("cluster", "") == case.cluster
            about.add(labels.get("ceph_daemon") or labels["option"])
    return found
