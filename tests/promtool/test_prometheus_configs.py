"""Every configuration of Prometheus that is given to users, as Prometheus' own tool sees it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.recorded import RELEASES
from tests.release_tools import tool

DEPLOY = Path(__file__).parents[2] / "deploy"


def of_the_page(holds: str) -> str:
    """The one example of the page that has this."""
    page = Path("docs/install/prometheus.md").read_text()
    [block] = [it for it in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if holds in it]
    return str(block)


def of_a_pair() -> str:
    """What the page says for two servers that scrape the same."""
    return of_the_page("external_labels")


def with_passwords() -> str:
    return of_the_page("password_file")


def in_a_template() -> str:
    """The two jobs for cephadm's template, below others."""
    jobs = (DEPLOY / "cephadm" / "scrape.yml").read_text()
    return f"scrape_configs:\n  - job_name: ceph\n    honor_labels: true\n{jobs}"


CONFIGS = {
    "prometheus": (DEPLOY / "prometheus" / "prometheus.yml").read_text,
    "compose": (DEPLOY / "compose" / "prometheus.yml").read_text,
    "agent": (DEPLOY / "scale" / "agent.yml").read_text,
    "pair": of_a_pair,
    "passwords": with_passwords,
    "cephadm": in_a_template,
}


@pytest.mark.parametrize("release", [release for release in RELEASES if release != "pacific"])
@pytest.mark.parametrize("name", CONFIGS)
def test_prometheus_takes_a_configuration_as_it_is_written(
    name: str, release: str, tmp_path: Path
) -> None:
    (tmp_path / "prometheus.yml").write_text(CONFIGS[name]())
    mode = ["--agent"] if name == "agent" else []
    argv = [*tool(release, "promtool"), "check", "config", "--syntax-only", *mode, "prometheus.yml"]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_servers_of_a_pair_differ_in_one_label_that_no_alert_has() -> None:
    config = yaml.safe_load(of_a_pair())
    [label] = config["global"]["external_labels"]
    assert config["alerting"]["alert_relabel_configs"] == [{"regex": label, "action": "labeldrop"}]
    agent = yaml.safe_load((DEPLOY / "scale" / "agent.yml").read_text())
    assert list(agent["global"]["external_labels"]) == [label]
