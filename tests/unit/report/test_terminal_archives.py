"""Archives from somebody else, through every command that shows one: their names stay text."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_archive import Builder, SyntheticRepeat

from cephqos_base.command import main
from cephqos_loadgen.run_recording.layout import MANIFEST, MANIFEST_SUM
from cephqos_loadgen.run_recording.regular import size_and_digest

from ..hostile_text import HOSTILE, obeyed

MARK = "MARK"


def replaced(value: Any, text: str, key: str = "") -> Any:
    """Every string that is not one of the format's own words ends with the text."""
    if isinstance(value, dict):
        return {
            name.replace(MARK, text): replaced(item, text, name) for name, item in value.items()
        }
    if isinstance(value, list):
        return [replaced(item, text, key) for item in value]
    if isinstance(value, str) and (MARK in value or key in ("scenario", "about", "error", "host")):
        return value if key == "folder" else value.replace(MARK, "") + text
    return value


def archive(folder: Path, text: str, iops: float) -> Path:
    """A run whose names, messages and machine are called so."""
    repeats = [SyntheticRepeat(iops, scrub_seconds=4.0), SyntheticRepeat(iops + 1)]
    Builder(run=MARK, points={MARK: repeats, "b": repeats}).write(folder)
    for file in folder.rglob("*.json"):
        document = replaced(json.loads(file.read_text()), text)
        if file.name == "archive.json":
            document |= {"restore_commands": [text], "error": text, "status": "failed"}
        if file.name == "environment.json":
            document["host"] |= {"cpu_models": [text], "kernel": text}
            document["cluster"] |= {"fsid": text, "versions": {"overall": {text: 2}}}
        if file.name == "plan.json":
            for point in document["points"]:
                point["phases"].append({"name": "scrub", "action": {"kind": "scrub"}})
        file.write_text(json.dumps(document))
    (folder / "scenario.yaml").write_text(f"about: {text}\n{text}", errors="surrogatepass")
    seal(folder)
    return folder


def seal(folder: Path) -> None:
    """Size and checksum of every file, as the recorder leaves them."""
    manifest = json.loads((folder / MANIFEST).read_text())
    for file in folder.rglob("*"):
        if file.is_file() and file.name not in (MANIFEST, MANIFEST_SUM):
            size, digest = size_and_digest(file)
            manifest["files"][str(file.relative_to(folder))] = {"bytes": size, "sha256": digest}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (folder / MANIFEST_SUM).write_text(f"{size_and_digest(folder / MANIFEST)[1]}  {MANIFEST}\n")


@pytest.fixture(params=tuple(HOSTILE.values()), ids=tuple(HOSTILE))
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_no_name_in_an_archive_drives_a_terminal(
    hostile: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The name of a folder has no slash, no NUL and no surrogates of other kinds.
    own = "".join(c for c in hostile if c not in "/\0\ud800")
    first = str(archive(tmp_path / "runs" / f"1{own}", hostile, 100.0))
    other = str(archive(tmp_path / "runs" / f"2{own}", hostile, 90.0))
    runs = str(tmp_path / "runs")
    for command in (
        ["archive", "ls", runs],
        ["archive", "ls", runs, "--json"],
        ["archive", "show", first],
        ["archive", "show", first, "--json"],
        ["archive", "verify", first],
        ["archive", "export", first, "--to", f"{runs}/out"],
        ["report", first, "--out", f"{runs}/report{own}"],
        ["compare", first, other],
        *(["compare", first, other, f"--{form}"] for form in ("markdown", "html", "json")),
        ["compare", first, other, "--fail-if", hostile],
        ["run", "--resume", first, "--check"],
        ["run", f"{first}/scenario.yaml", "--check"],
    ):
        status = main(command)
        assert status == 0 or command[0] not in ("archive", "report"), command
        told = capsys.readouterr()
        assert told.out + told.err
        assert not obeyed(told.out + told.err) - {"\t"}, command
