"""A real cluster's logs in Loki, and an alert that one of its lines brings about.

One lab, with Alertmanager and a receiver. Each case asks for what the daemons themselves wrote.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.lab.conftest import LabPool
from tests.log_pipeline import TriedPipeline
from tests.waiting import until

from cephqos_alerts.output.build import log_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_loadgen.ceph_option import CephOption
from cephqos_stack.logs import LogSpec

from .conftest import Watched, lab_spec, watched
from .log_files import entries, need_tools

pytestmark = pytest.mark.full


# A minute between evaluations becomes two seconds.
_RULES = log_rules(RuleSettings(scrape_interval=0.5, time_scale=1 / 30))


@dataclass(frozen=True)
class Logged:
    on: Watched
    logs: TriedPipeline
    fsid: str

    def written(self, daemon: str) -> list[str]:
        """All entries that a daemon wrote, also before its log was rotated."""
        log = self.on.lab.paths.log(daemon)
        older = log.with_name(f"{log.name}.1")
        texts = [file.read_text(errors="replace") for file in (older, log) if file.exists()]
        return [entry for text in texts for entry in entries(text)]

    def selector(self, daemon: str) -> str:
        kind = daemon.split(".")[0]
        return f'{{cluster="{self.fsid}", log="{kind}"}} | ceph_daemon="{daemon}"'

    async def as_written(self, daemon: str, within: float = 40) -> None:
        """Wait until Loki has each entry of a daemon, once."""
        wrong = ""

        async def same() -> bool:
            nonlocal wrong
            have = sorted(text for _, _, text in await self.logs.lines(self.selector(daemon)))
            wanted = sorted(self.written(daemon))
            wrong = f"{daemon}: {len(have)} entries in Loki, {len(wanted)} written"
            return have == wanted

        await until(same, lambda: wrong, within)


@pytest.fixture(scope="module")
def logged(labs: LabPool) -> Iterator[Logged]:
    need_tools()
    may_assert = CephOption("osd", "debug_asok_assert_abort", "true")
    spec = lab_spec("logs")
    for on in watched(labs, lab_spec("logs", settings=(*spec.settings, may_assert))):
        folder = on.lab.paths.work / "logs"
        folder.mkdir()
        fsid = labs.call(on.lab.exec(["ceph", "fsid"])).stdout.strip()
        logs = TriedPipeline(
            LogSpec(
                folder=folder,
                logs=on.lab.paths.logs,
                cluster=fsid,
                rules=_RULES,
                audit=True,
                alertmanager_url=on.stack.alertmanager_url,
            )
        )
        labs.call(logs.__aenter__())
        try:
            yield Logged(on, logs, fsid)
        finally:
            labs.call(logs.__aexit__(None, None, None))


async def test_a_reverted_option_is_an_alert_that_names_it(logged: Logged) -> None:
    begin = await logged.on.quiet()
    await logged.on.config("osd_max_backfills", 7)
    alert = await logged.on.received(begin, alertname="CephQosSettingReverted")
    assert alert.has(option="osd_max_backfills", cluster=logged.fsid, severity="info")


async def test_a_daemon_whose_log_is_rotated_loses_no_line(logged: Logged) -> None:
    log = logged.on.lab.paths.log("osd.0")
    await logged.as_written("osd.0")
    log.rename(log.with_name(f"{log.name}.1"))
    socket = str(logged.on.lab.paths.socket("osd.0"))
    await logged.on.lab.exec(["ceph", "--admin-daemon", socket, "log", "reopen"])
    await logged.on.config("osd_max_backfills", 5)  # which makes it write something
    await logged.as_written("osd.0")
    assert log.stat().st_size > 0


async def test_the_cluster_log_and_the_other_daemons_arrive_too(logged: Logged) -> None:
    await logged.as_written("mgr.x")
    found = await logged.logs.query(
        f'sum by (log) (count_over_time({{cluster="{logged.fsid}"}}[1h]))'
    )
    assert {row["metric"]["log"] for row in found} == {"osd", "mon", "mgr", "cluster", "audit"}


async def test_an_assertion_is_one_fatal_entry_with_its_backtrace_and_an_alert(
    logged: Logged,
) -> None:
    begin = await logged.on.quiet()
    socket = str(logged.on.lab.paths.socket("osd.2"))
    script = f"ceph --admin-daemon {socket} assert; true"  # it does not live to answer
    await logged.on.lab.exec(["sh", "-c", script])
    alert = await logged.on.received(
        begin, alertname="CephQosDaemonCrashed", ceph_daemon="osd.2", log="osd"
    )
    assert alert.receiver == "warning"
    await logged.as_written("osd.2")
    fatal = await logged.logs.lines(
        f'{{cluster="{logged.fsid}", severity="fatal"}} |= "FAILED ceph_assert"'
    )
    assert len(fatal) == 1
    assert fatal[0][2].count("\n") > 10 and "ceph version" in fatal[0][2]
