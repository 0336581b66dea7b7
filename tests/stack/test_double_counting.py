"""Ceph's own exporter scraped beside ours: the documented jobs keep sums what they were."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.lab.conftest import LabPool, lab_name
from tests.waiting import until

from cephqos_base.servers import NoAnswer, fetch
from cephqos_doctor import prometheus_facts, targets
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.programs import free_ports
from cephqos_stack.stack import Stack, StackSpec

DOCUMENTED = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"
SUM = "sum(ceph_osd_op_w)"
CEPHS_OWN = 'sum(ceph_osd_op_w{job="ceph"})'


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    lab = labs.start(LabSpec(name=lab_name("twice"), release="reef", osds=2))
    yield lab
    labs.end(lab)


@pytest.fixture(scope="module")
def manager(lab: RunningLab, labs: LabPool) -> str:
    """Where the manager's Prometheus module answers, with all counters."""
    [port] = free_ports(1)

    async def enable() -> None:
        for option, value in (
            ("server_addr", "127.0.0.1"),
            ("server_port", str(port)),
            ("exclude_perf_counters", "false"),
            ("scrape_interval", "2"),
        ):
            name = f"mgr/prometheus/{option}"
            await lab.exec(["ceph", "config", "set", "mgr", name, value])
        await lab.exec(["ceph", "mgr", "module", "enable", "prometheus"])
        await lab.exec(["ceph", "osd", "pool", "create", "busy", "8"])
        bench = "rados -p busy bench 3 write -b 4096 -t 8 --no-cleanup"
        await lab.exec(bench.split())
        for _ in range(120):
            try:
                if b"ceph_osd_op_w{" in await fetch(f"http://127.0.0.1:{port}/metrics"):
                    return
            except NoAnswer:
                pass
            await asyncio.sleep(0.5)
        raise AssertionError("the manager's Prometheus module shows no counters")

    labs.call(enable())
    return f"127.0.0.1:{port}"


class DocumentedStack(Stack):
    """Scrapes with the documented jobs; only their target files are the test's."""

    def _prometheus_config(self) -> dict[str, Any]:
        config = super()._prometheus_config()
        documented = yaml.safe_load(_uncommented(DOCUMENTED.read_text()))
        jobs = {job["job_name"]: job for job in documented["scrape_configs"]}
        where = self.dir / "targets"
        where.mkdir(parents=True, exist_ok=True)
        address = self.exporter_url.removeprefix("http://")
        (where / "cephqos.yml").write_text(json.dumps([{"targets": [address]}]))
        # It describes itself: the same exporter once more, under a job of its own.
        http = jobs["cephqos-http"]
        http["http_sd_configs"][0]["url"] = f"{self.exporter_url}/sd"
        http["metric_relabel_configs"] = [
            {"source_labels": ["__name__"], "regex": "cephqos_exporter_.*", "action": "keep"}
        ]
        others = [job for job in config["scrape_configs"] if job["job_name"] != "cephqos"]
        return config | {"scrape_configs": [jobs["cephqos"], http, *others]}


def _uncommented(text: str) -> str:
    """With the job of http_sd that stands there as a comment."""
    head, _, commented = text.partition("  # - job_name: cephqos-http")
    assert commented
    return head + "  - job_name: cephqos-http" + re.sub(r"\n  # ", "\n  ", commented)


async def holds(stack: Stack, comparison: str) -> None:
    """Of a cluster at rest, once both have been scraped after the load."""

    async def true() -> bool:
        return bool(await stack.query(comparison))

    await until(true, comparison)


async def doubled(stack: Stack) -> list[str]:
    facts = await prometheus_facts.gather(stack.prometheus_url, headers={}, grafana_headers={})
    found = [check for check in targets.CHECKS if check.name == "nothing-twice"]
    return [finding.problem for check in found for finding in check.find(facts)]


async def test_without_the_relabelling_a_sum_doubles_and_the_doctor_says_so(
    lab: RunningLab, manager: str
) -> None:
    spec = StackSpec(name="doubled", rules=False, targets={"ceph": manager})
    async with Stack(lab, spec) as stack:
        await holds(stack, f"{SUM} == 2 * ({CEPHS_OWN} > 0)")
        assert any("count double" in problem for problem in await doubled(stack))


async def test_with_the_documented_jobs_the_sum_is_that_of_cephs_exporter_alone(
    lab: RunningLab, manager: str
) -> None:
    spec = StackSpec(name="documented", rules=False, targets={"ceph": manager})
    async with DocumentedStack(lab, spec) as stack:
        # What is ours comes all the same, and the exporter was found through its own page too.
        await holds(stack, "count(cephqos_daemon_up) == 2")
        await holds(stack, "count(cephqos_qos_capacity_normalised_ops_per_second) == 2")
        await holds(stack, 'sum(cephqos_exporter_build_info{job="cephqos-http"}) == 1')
        await holds(stack, f"{SUM} == ({CEPHS_OWN} > 0)")
        assert not await doubled(stack)
