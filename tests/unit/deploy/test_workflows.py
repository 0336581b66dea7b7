"""The workflows: each action is one commit, one file has the owner, and only that publishes."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

GITHUB = Path(".github")
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
TEXTS = [file.read_text(encoding="utf-8") for file in WORKFLOWS]


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / name).read_text())["jobs"]
    return found


@pytest.mark.parametrize("text", TEXTS, ids=[file.stem for file in WORKFLOWS])
def test_an_action_is_named_by_its_commit_and_nothing_may_write_by_default(text: str) -> None:
    for used in re.findall(r"uses: (\S+)", text):
        assert used.startswith("./") or re.fullmatch(r"[\w/.-]+@[0-9a-f]{40}", used), used
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_names_of_an_owner_are_in_one_file() -> None:
    """It is empty until someone hosts the project."""
    assert len(re.findall(r"^OWNER=[a-z0-9-]*$", (GITHUB / "hosting.env").read_text(), re.M)) == 1
    for text in TEXTS:
        assert "ghcr.io" not in text
        assert "github.com/" not in re.sub(r"github\.com/rhysd/actionlint", "", text)


def test_what_publishes_waits_for_an_owner_and_for_the_tests() -> None:
    """A job that needs a skipped one is skipped too."""
    release = jobs("release.yml")
    assert release["images"]["if"] == "needs.hosting.outputs.owner != ''"
    assert {"test", "build"} <= set(release["images"]["needs"])
    publishing = {name for name, job in release.items() if "write" in str(job.get("permissions"))}
    assert publishing == {"images", "chart", "publish", "pypi", "site"}
    for name in publishing - {"images"}:
        assert publishing & set(release[name]["needs"]), name


def test_ci_and_the_night_run_the_scripts_that_people_run() -> None:
    assert ".ci/run" in str(jobs("ci.yml")["test"]["steps"])
    night = jobs("nightly.yml")
    assert ".ci/nightly" in str(night["test"]["steps"])
    assert "make test-clock" in str(night["clock"]["steps"])
    assert "make test-fast" in str(jobs("ci.yml")["pythons"]["steps"])
    assert "make test-grafana" in str(night["grafana"]["steps"])
    assert night["grafana"]["env"]["GRAFANA_IMAGE"].startswith("grafana/grafana:")


def test_a_pipe_fails_where_any_command_of_it_fails() -> None:
    """Without `shell: bash` it is the last one that counts."""
    steps = [
        step
        for file in WORKFLOWS
        for job in jobs(file.name).values()
        for step in job.get("steps", ())
    ]
    for step in steps:
        assert " | " not in step.get("run", "") or step.get("shell") == "bash", step
