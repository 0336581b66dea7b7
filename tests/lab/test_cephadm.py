"""Ceph's own Python reads the specifications for cephadm, and can refuse one."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path, tree_ready

pytestmark = pytest.mark.full


CEPHADM = Path(__file__).parents[2] / "deploy" / "cephadm"
# As `ceph orch apply` and the manager do it: read, judge, and what goes to the host.
READ = """
import json, sys
from ceph.deployment.service_spec import ServiceSpec
spec = ServiceSpec.from_json(json.load(sys.stdin))
spec.validate()
extra = EXTRA
print(json.dumps({"name": spec.service_name(), "config": spec.config_json(), "extra": extra}))
"""


CONTAINER_ARGUMENTS = 'spec.to_json().get("extra_container_args")'


def read(
    release: str, document: object, extra: str = CONTAINER_ARGUMENTS
) -> "subprocess.CompletedProcess[str]":
    found = find_release(release)
    if not tree_ready(found):
        pytest.skip(f"no release tree of {release}: run `cephqos lab trees`")
    argv = ["chroot", str(tree_path(found)), "python3", "-c", READ.replace("EXTRA", extra)]
    text = json.dumps(document)
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("release", ["reef", "tentacle"])
@pytest.mark.parametrize("name", ["exporter", "cluster", "collector"])
def test_cephs_python_takes_the_specification(release: str, name: str) -> None:
    document = yaml.safe_load((CEPHADM / f"{name}.yml").read_text())
    done = read(release, document)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["name"] == f"container.cephqos-{name}"
    for key, value in document["spec"].items():
        assert told["config"][key] == value
    assert told["extra"] == document["extra_container_args"]


@pytest.mark.parametrize("name", ["exporter", "cluster", "collector"])
def test_that_of_pacific_takes_it_with_arguments_where_the_page_says(name: str) -> None:
    document = yaml.safe_load((CEPHADM / f"{name}.yml").read_text())
    document["spec"]["args"] = document.pop("extra_container_args")
    assert read("pacific", document, 'getattr(spec, "args")').returncode == 0


@pytest.mark.parametrize("release", ["reef", "tentacle"])
@pytest.mark.parametrize("name", ["exporter", "cluster"])
def test_it_takes_the_files_for_tls_and_a_password_at_the_end(release: str, name: str) -> None:
    text = "".join((CEPHADM / f"{it}.yml").read_text() for it in (name, "web"))
    done = read(release, yaml.safe_load(text), 'spec.to_json()["extra_entrypoint_args"]')
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["config"]["files"]) == {f"web/web.{it}" for it in ("yml", "crt", "key")}
    assert told["extra"] == ["--web.config.file=/etc/cephqos/web.yml"]


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_and_refuses_the_keys_that_the_page_gives_to_the_next_release(release: str) -> None:
    document = yaml.safe_load((CEPHADM / "exporter.yml").read_text())
    document["spec"]["prometheus_sd"] = True
    assert read(release, document).returncode != 0


@pytest.mark.parametrize("release", ["reef", "tentacle"])
def test_and_refuses_one_with_a_key_that_it_does_not_know(release: str) -> None:
    document = yaml.safe_load((CEPHADM / "exporter.yml").read_text())
    document["spec"]["imagine"] = 1
    assert read(release, document).returncode != 0
