"""Which run may be gone on with."""

import json
from pathlib import Path

import pytest

from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.run.resume import check_cluster


def test_a_run_goes_on_on_its_own_cluster_only(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text(json.dumps({"cluster": {"fsid": "one"}}))
    check_cluster(tmp_path, "one")
    with pytest.raises(ClusterUnfit, match="it ran on the cluster one, this is two"):
        check_cluster(tmp_path, "two")


def test_a_run_that_saw_no_cluster_goes_on_on_any(tmp_path: Path) -> None:
    check_cluster(tmp_path, "one")
