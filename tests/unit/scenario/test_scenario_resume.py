"""Which run may be gone on with."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.check.options import RunOptions
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.run import runner
from cephqos_loadgen.run.resume import check_cluster
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.parse import parse


def test_a_run_goes_on_on_its_own_cluster_only(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "one"}}))
    check_cluster(tmp_path, "one")
    with pytest.raises(ClusterUnfit, match="it ran on the cluster one, this is two"):
        check_cluster(tmp_path, "two")


def test_a_run_that_saw_no_cluster_goes_on_on_any(tmp_path: Path) -> None:
    check_cluster(tmp_path, "one")


class OnCluster:
    """A session that meets the cluster `fsid`, asks whether it may, and is not let any further."""

    fsid = "two"

    def __init__(self, *_: object, check: Any, **__: object) -> None:
        self._check = check
        self.journal = SimpleNamespace(used=False, commands=list)
        self.kept = SimpleNamespace(left=set())
        self.failures: list[str] = []

    async def begin(self) -> None:
        self._check(self.fsid)
        raise RuntimeError("it went on")

    async def end(self) -> None: ...


async def begun(options: RunOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on the cluster `two`, as far as its first look at it."""
    monkeypatch.setattr(runner, "Session", OnCluster)
    text = "scenario: s\nphases: [{name: w, wait: {}, until: {duration: 1s}}]\n"
    plan = parse(text, "s.yaml")
    archive: Any = None
    await Runner(plan, options, Silent())._on_cluster(archive, plan.points[0].lab, [])


async def test_resuming_on_another_cluster_is_refused_when_that_cluster_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "one"}}))
    options = RunOptions(
        out=tmp_path / "out", conf=tmp_path / "ceph.conf", known_fsid="two", work=tmp_path / "work"
    )
    with pytest.raises(RuntimeError, match="it went on"):
        await begun(options, monkeypatch)
    with pytest.raises(ClusterUnfit, match="it ran on the cluster one, this is two"):
        await begun(replace(options, resume=tmp_path), monkeypatch)
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "two"}}))
    with pytest.raises(RuntimeError, match="it went on"):
        await begun(replace(options, resume=tmp_path), monkeypatch)
