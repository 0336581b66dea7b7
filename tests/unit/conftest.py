"""What unit tests share: certificates are made for each run."""

import shutil
import subprocess
from pathlib import Path

import pytest


def _openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def _signed(directory: Path, name: str, alternative: str) -> None:
    _openssl(
        directory,
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
        *("-keyout", f"{name}.key", "-out", f"{name}.csr"),
    )
    (directory / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
    _openssl(
        directory,
        *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key"),
        *("-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt"),
    )


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ca, server (127.0.0.1) and client (prometheus.example) certificates."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing: apt-get install openssl")
    directory = tmp_path_factory.mktemp("certificates")
    _openssl(
        directory,
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Test CA", "-days", "2"),
        *("-keyout", "ca.key", "-out", "ca.crt"),
    )
    _signed(directory, "server", "IP:127.0.0.1")
    _signed(directory, "client", "DNS:prometheus.example")
    (directory / "junk.pem").write_text("not a certificate\n")
    return directory
