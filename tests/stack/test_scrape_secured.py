"""TLS, client certificates and passwords, tried with a real Prometheus and curl.

And where the secrets went: not into arguments, environments, logs or metrics.
"""

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml
from tests.exporter_process import ExporterProcess, exporter, replaying
from tests.release_tools import tool
from tests.unit.conftest import certificates  # noqa: F401 - a fixture
from tests.waiting import wait_until

from cephqos_exporter.ceph.cluster import tied
from cephqos_loadgen.programs import free_ports

PASSWORD = "correct-horse-battery"
RELEASE = "reef"


@pytest.fixture
def secured(tmp_path: Path, certificates: Path) -> Iterator[ExporterProcess]:  # noqa: F811
    """An exporter of replayed OSDs that wants a client certificate and a password."""
    shutil.copytree(certificates, tmp_path / "tls")
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(6)).decode()
    web = {
        "tls_server_config": {
            "cert_file": "tls/server.crt",
            "key_file": "tls/server.key",
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": "tls/ca.crt",
        },
        "basic_auth_users": {"prometheus": hashed},
    }
    (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
    (tmp_path / "password").write_text(PASSWORD)
    with (
        replaying(tmp_path / "run", ["reef/load"], 2) as sockets,
        exporter(
            f"--web.config.file={tmp_path / 'web.yml'}", f"--discovery.sockets={sockets}/*.asok"
        ) as running,
    ):
        yield running


def curl(running: ExporterProcess, tls: Path, *more: str) -> tuple[int, str]:
    argv = ["curl", "-sS", "--max-time", "20", "--cacert", str(tls / "ca.crt"), *more]
    argv += ["-w", "%{http_code}", "-o", "/dev/stdout", f"https://{running.address}/metrics"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout


def test_curl_gets_in_with_both_and_with_nothing_less(
    secured: ExporterProcess, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is missing: apt-get install curl")
    tls = tmp_path / "tls"
    # As the documentation says: the password comes from a file.
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login prometheus password {PASSWORD}")
    (tmp_path / "wrong").write_text("machine 127.0.0.1 login prometheus password guess")
    mine = ("--cert", str(tls / "client.crt"), "--key", str(tls / "client.key"))
    known = ("--netrc-file", str(tmp_path / "netrc"))
    status, said = curl(secured, tls, *mine, *known)
    assert (status, said[-3:]) == (0, "200")
    assert 'cephqos_daemon_up{ceph_daemon="osd.1"' in said
    status, said = curl(secured, tls, *mine)
    assert (status, said[-3:]) == (0, "401")
    assert "ceph" not in said
    status, said = curl(secured, tls, *mine, "--netrc-file", str(tmp_path / "wrong"))
    assert said[-3:] == "401"
    status, said = curl(secured, tls, *known)
    assert status != 0
    assert "cephqos" not in said
    # Without TLS, or trusting another authority, there is nothing to be had either.
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://{secured.address}/metrics", timeout=10)
    argv = ["curl", "-sS", *mine, *known, f"https://{secured.address}/metrics"]
    assert subprocess.run(argv, capture_output=True, check=False, timeout=30).returncode == 60


def job(name: str, running: ExporterProcess, tls: Path, **changed: Any) -> dict[str, Any]:
    whole = {
        "job_name": name,
        "scheme": "https",
        "tls_config": {
            "ca_file": str(tls / "ca.crt"),
            "cert_file": str(tls / "client.crt"),
            "key_file": str(tls / "client.key"),
        },
        "basic_auth": {"username": "prometheus", "password_file": str(tls.parent / "password")},
        "static_configs": [{"targets": [running.address]}],
    }
    return {key: value for key, value in (whole | changed).items() if value is not None}


@contextmanager
def prometheus(directory: Path, jobs: list[dict[str, Any]]) -> Iterator[str]:
    config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    [port] = free_ports(1)
    argv = [*tool(RELEASE, "prometheus"), f"--config.file={directory / 'prometheus.yml'}"]
    argv += [f"--storage.tsdb.path={directory / 'data'}", "--log.level=error"]
    process = subprocess.Popen(tied([*argv, f"--web.listen-address=127.0.0.1:{port}"]))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def health(url: str, jobs: int) -> dict[str, tuple[str, str]]:
    """Each job's health and last error, once all have been scraped."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/api/v1/targets", timeout=5) as reply:  # noqa: S310
                found = json.load(reply)["data"]["activeTargets"]
        except OSError:
            found = []
        told = {one["labels"]["job"]: (one["health"], one["lastError"]) for one in found}
        if len(told) == jobs and all(state != "unknown" for state, _ in told.values()):
            return told
        time.sleep(0.5)
    raise AssertionError("not all jobs were scraped within 60 s")


def test_prometheus_scrapes_with_both_and_with_nothing_less(
    secured: ExporterProcess, tmp_path: Path
) -> None:
    tls = tmp_path / "tls"
    authority = {"ca_file": str(tls / "ca.crt")}
    jobs = [
        job("cephqos", secured, tls),
        job("no-password", secured, tls, basic_auth=None),
        job("no-certificate", secured, tls, tls_config=authority),
        job("no-authority", secured, tls, tls_config={}),
        job("plain", secured, tls, scheme="http", tls_config=None),
    ]
    with prometheus(tmp_path, jobs) as url:
        told: dict[str, tuple[str, str]] = {}

        def as_wanted() -> bool:
            """A scrape may take too long: the first, of a password, or those of a busy machine."""
            told.update(health(url, len(jobs)))
            assert {told[name][0] for name in told.keys() - {"cephqos"}} == {"down"}
            said = "401" in told["no-password"][1] and "x509" in told["no-authority"][1]
            return told["cephqos"] == ("up", "") and said

        wait_until(as_wanted, lambda: f"one is let in, and the others are told why: {told}")


def test_the_password_shows_nowhere(secured: ExporterProcess, tmp_path: Path) -> None:
    tls = tmp_path / "tls"
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login prometheus password {PASSWORD}")
    mine = ("--cert", str(tls / "client.crt"), "--key", str(tls / "client.key"))
    _, page = curl(secured, tls, *mine, "--netrc-file", str(tmp_path / "netrc"))
    assert page[-3:] == "200"
    hashed = yaml.safe_load((tmp_path / "web.yml").read_text())["basic_auth_users"]["prometheus"]
    process = Path(f"/proc/{secured.process.pid}")
    shown = page + "".join(secured.log)
    shown += (process / "cmdline").read_text() + (process / "environ").read_text()
    for secret in (PASSWORD, hashed, (tls / "server.key").read_text().splitlines()[1]):
        assert secret not in shown
