"""Every `ceph` command of the runbooks, on a real cluster of every release; every query parsed."""

import asyncio
import json
import re
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.lab.conftest import RELEASES_IN_TURN, LabPool
from tests.release_tools import run, tool
from tests.runbooks import TEXT
from tests.waiting import until

from cephqos_loadgen.lab.lab import RunningLab

from .conftest import lab_spec

_LATER: Final = " # 18.2 and later"
# What a sentence says of releases. Labs run 16.2, 18.2 and 20.2 as built, not the last of each.
_ONLY_ON: Final = {
    "ceph config set osd.N bdev_async_discard_threads 1": ("reef", "tentacle"),
    "ceph config set osd osd_mclock_override_recovery_settings true": ("reef", "tentacle"),
    "ceph config set osd bluestore_slow_ops_warn_lifetime 3600": ("reef", "tentacle"),
    # The lab's 16.2 was built with another allocator.
    "ceph tell osd.N heap release": ("reef", "tentacle"),
    "ceph balancer mode upmap-read": ("tentacle",),
    "ceph osd pool set POOL bulk true": ("reef", "tentacle"),
    "ceph osd pool set noautoscale": ("reef", "tentacle"),
    "ceph osd pool unset noautoscale": ("reef", "tentacle"),
    "ceph osd rm-pg-upmap-primary PGID": ("reef", "tentacle"),
    "ceph tell osd.N 'trim stale osdmaps'": (),
    "ceph tell osd.N clear_shards_repaired": ("tentacle",),
    "ceph osd set-require-min-compat-client reef": ("reef", "tentacle"),
}
# Refused while there is nothing to lose, which the reply has to say.
_NOTHING_LOST: Final = "mark_unfound_lost"
# A lab has no orchestrator, no MDS, no keys of OSDs, one monitor, a host without a known name, and
# nothing to mute.
_NOT_IN_A_LAB: Final = re.compile(
    r"ceph (orch|cephadm|mds|tell mds\.|fs set|mon (ok-to-)?rm|auth (get|add)|osd (un)?set-group"
    r"|osd crush move|health mute)"
)
_PLACEHOLDERS: Final = {
    "osd.N": "osd.0",
    "POOL": "books",
    "RULE": "replicated_rule",
    "BYTES": "2147483648",
    "NUMBER": "2",
    "WEIGHT": "1",
    "EPOCH": "1",
    "FILE": "/dev/null",
    "OPTION": "osd_max_scrubs",
    "FROM": "0",
    "TO": "1",
    "KEY": "/dev/null",
    "MAP": "/dev/null",
}


def blocks(language: str) -> list[str]:
    """The lines of all blocks of a language, in their order, each once."""
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(line.strip() for text in found for line in text.splitlines()))


def commands() -> list[str]:
    """Those for `ceph`, in blocks and in sentences; what moves data comes last."""
    plain = re.sub(r"^ *```.*?^ *```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    found = [*blocks("sh"), *re.findall(r"`(ceph [^`]+)`", plain)]
    known = [line for line in dict.fromkeys(found) if line.startswith("ceph ")]
    return sorted(known, key=lambda line: re.search(r"ceph osd (out|down) ", line) is not None)


def test_there_are_commands_and_queries_and_nothing_else_in_blocks() -> None:
    assert len(commands()) > 50
    assert len(blocks("promql")) > 30
    assert all(line.startswith(("ceph ", "cephqos ")) for line in blocks("sh"))


async def _answers(lab: RunningLab, command: str) -> None:
    async def answers() -> bool:
        script = f"timeout 30 {command} >/dev/null 2>&1; echo $?"
        return (await lab.exec(["sh", "-c", script])).stdout == "0\n"

    await until(answers, f"{command}: status 0")


async def _said(lab: RunningLab, lines: list[str]) -> dict[str, str]:
    """What commands say, with their status. Those of settings run four at a time."""

    async def once(line: str) -> str:
        # Some commands set their output, which is the shell's, to not block.
        script = f"said=$(timeout 40 {line} 2>&1); printf '%s\\nstatus %s\\n' \"$said\" $?"
        return (await lab.exec(["sh", "-c", script])).stdout

    async def said(line: str) -> str:
        text = await once(line)
        # A manager that has just started loads its modules; one that crashed is started again.
        if "not enabled/loaded" in text or text.endswith("status 124\n"):
            await _answers(lab, "ceph fs status")
            text = await once(line)
        return text

    settings = [line for line in lines if line.startswith("ceph config ")]
    fours = [settings[at : at + 4] for at in range(0, len(settings), 4)]
    fours += [[line] for line in lines if line not in settings]
    return {
        line: text
        for four in fours
        for line, text in zip(four, await asyncio.gather(*map(said, four)), strict=True)
    }


@pytest.mark.parametrize("release", RELEASES_IN_TURN)
def test_every_command_runs(labs: LabPool, release: str) -> None:
    lab = labs.start(lab_spec(f"runbooks-{release}", release=release, osds=2))
    try:
        # A manager hears of an OSD's configuration some seconds after the OSD is up.
        labs.call(_answers(lab, "ceph config show osd.0 osd_mclock_profile"))
        labs.call(lab.exec(["ceph", "osd", "pool", "create", "books", "1"]))
        # The manager loads its modules one after the other.
        labs.call(_answers(lab, "ceph fs status"))
        # Placement groups are unknown at first.
        labs.call(_answers(lab, "ceph osd ok-to-stop osd.0"))
        pools = json.loads(labs.call(lab.exec(["ceph", "osd", "lspools", "-f", "json"])).stdout)
        pgid = next(f"{pool['poolnum']}.0" for pool in pools if pool["poolname"] == "books")
        lines = []
        for line in commands():
            too_old = release == "pacific" and line.endswith(_LATER)
            too_old |= release not in _ONLY_ON.get(line, (release,))
            if not (too_old or _NOT_IN_A_LAB.match(line)):
                argv = line.removesuffix(_LATER)
                for name, value in {**_PLACEHOLDERS, "PGID": pgid}.items():
                    argv = argv.replace(name, value)
                lines.append(argv)
        said = labs.call(_said(lab, lines))
    finally:
        labs.end(lab)

    def good(line: str, text: str) -> bool:
        return "no unfound" in text if _NOTHING_LOST in line else text.endswith("status 0\n")

    failed = [f"{line}: {text[-300:]}" for line, text in said.items() if not good(line, text)]
    assert not failed, "\n".join(failed)


def test_every_query_is_one(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{i}", "expr": query.replace("HOST", "host")}
        for i, query in enumerate(blocks("promql"))
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "runbooks", "rules": rules}]}))
    said = run([*tool("reef", "promtool"), "check", "rules", "--lint=none", str(file)])
    assert f"{len(rules)} rules found" in said
