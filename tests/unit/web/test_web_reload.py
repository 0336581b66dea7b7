"""The web configuration and its files while they are being replaced, by whoever is not careful."""

import asyncio
import logging
import os
import shutil
import subprocess
from pathlib import Path

import aiohttp
import pytest

from cephqos_base.errors import ConfigError
from cephqos_exporter.web import gate

from .test_web_server import HASH, MUTUAL, Scrapes, WebClient, basic, serving, trusting, web_file

GOOD = basic("prometheus", "secret")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be read is tried again at once."""
    monkeypatch.setattr(gate, "RETRY_SECONDS", 0.0)


async def serves(client: WebClient, certificates: Path, name: str) -> bool:
    """Whether the certificate served is that of `server` or of `client`."""
    try:
        await client.get("/-/healthy", tls=trusting(certificates), Connection="close")
    except aiohttp.ClientConnectorCertificateError:
        return name == "client"
    return name == "server"


async def test_a_key_that_comes_after_its_certificate_is_taken_then(
    tmp_path: Path, certificates: Path
) -> None:
    path = web_file(tmp_path, certificates)
    async with serving(Scrapes(), web_config=path) as client:
        shutil.copy(certificates / "client.crt", tmp_path / "server.crt")
        assert await serves(client, certificates, "server"), "no key to it yet: the old one"
        shutil.copy(certificates / "client.key", tmp_path / "server.key")
        assert await serves(client, certificates, "client")


@pytest.mark.usefixtures("impatient")
async def test_files_of_other_names_that_were_not_whole_are_tried_again(
    tmp_path: Path, certificates: Path
) -> None:
    """The files that are watched are those of the configuration in force, which has other ones."""
    path = web_file(tmp_path, certificates)
    async with serving(Scrapes(), web_config=path) as client:
        (tmp_path / "new.crt").write_bytes((certificates / "client.crt").read_bytes()[:100])
        shutil.copy(certificates / "client.key", tmp_path / "new.key")
        path.write_text("tls_server_config: {cert_file: new.crt, key_file: new.key}")
        assert await serves(client, certificates, "server")
        shutil.copy(certificates / "client.crt", tmp_path / "new.crt")
        assert await serves(client, certificates, "client")


@pytest.mark.usefixtures("impatient")
async def test_a_configuration_that_stays_bad_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "web.yml"
    config.write_text("{}")
    caplog.set_level(logging.ERROR)
    async with serving(Scrapes(), web_config=config) as client:
        config.write_text("basic_auth_users: {prometheus: oops}")
        for _ in range(5):
            await client.get("/-/healthy")
    assert len([record for record in caplog.records if "kept the web" in record.message]) == 1


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key", "ca.crt"])
@pytest.mark.parametrize("instead", ["fifo", "/dev/zero", "/dev/tty"])
async def test_what_is_no_file_in_the_place_of_one_holds_up_nobody(
    tmp_path: Path, certificates: Path, name: str, instead: str
) -> None:
    path = web_file(tmp_path, certificates, MUTUAL)
    async with serving(Scrapes(), web_config=path) as client:
        whole = (tmp_path / name).rename(tmp_path / "whole")
        if instead == "fifo":
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).symlink_to(instead)
        context = trusting(certificates, "client")
        assert (await client.get("/metrics", tls=context))[0] == 200
        (tmp_path / name).unlink()
        whole.rename(tmp_path / name)
        assert (await client.get("/metrics", tls=context))[0] == 200


async def test_a_file_that_may_be_read_again_is_read(
    tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its content and time are the same: the right to read it was missing. Tests may be root."""
    path = web_file(tmp_path, certificates)
    locked = tmp_path / "server.crt"
    really = Path.read_bytes

    def read_bytes(file: Path) -> bytes:
        if file == locked and not file.stat().st_mode & 0o004:
            raise PermissionError(13, "Permission denied")
        return really(file)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    locked.chmod(0o644)
    async with serving(Scrapes(), web_config=path) as client:
        shutil.copy(certificates / "client.key", tmp_path / "server.key")
        locked.write_bytes((certificates / "client.crt").read_bytes())
        locked.chmod(0o600)
        assert await serves(client, certificates, "server")
        locked.chmod(0o644)
        assert await serves(client, certificates, "client")


async def test_a_file_that_goes_while_it_is_read_leaves_the_old_one_in_force(
    tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = web_file(tmp_path, certificates, MUTUAL)
    async with serving(Scrapes(), web_config=path) as client:
        really = Path.read_bytes
        times = 0

        def read_bytes(file: Path) -> bytes:
            nonlocal times
            times += file.name == "ca.crt"
            if file.name == "ca.crt" and times > 1:  # after it was checked
                raise FileNotFoundError(2, "No such file or directory")
            return really(file)

        monkeypatch.setattr(Path, "read_bytes", read_bytes)
        (tmp_path / "ca.crt").touch()
        status, _, _ = await client.get("/metrics", tls=trusting(certificates, "client"))
        assert status == 200
        assert times > 1


@pytest.mark.usefixtures("impatient")
async def test_passwords_do_not_end_while_the_file_is_being_written(tmp_path: Path) -> None:
    """An editor that empties the file first opens the server for that moment."""
    config = tmp_path / "web.yml"
    text = f"basic_auth_users: {{prometheus: {HASH}}}"
    config.write_text(text)
    async with serving(Scrapes(), web_config=config) as client:
        for half in ("", "{}", "rate_limit: {interval: 1s, burst: 100}\n"):
            config.write_text(half)
            assert (await client.get("/metrics"))[0] == 401
            assert (await client.get("/metrics", Authorization=GOOD))[0] == 200
            with pytest.raises(ConfigError, match="at least one user, until a restart"):
                client.server.gate.reload()
        config.write_text(text.replace("prometheus", "other"))
        assert (await client.get("/metrics", Authorization=GOOD))[0] == 401
        assert (await client.get("/metrics", Authorization=basic("other", "secret")))[0] == 200


@pytest.mark.parametrize(
    ("extensions", "days", "allowed"),
    [
        ("extendedKeyUsage = clientAuth", 2, True),
        ("extendedKeyUsage = serverAuth", 2, False),
        ("extendedKeyUsage = clientAuth", -1, False),  # expired
    ],
)
async def test_a_client_certificate_must_be_for_clients_and_of_today(
    tmp_path: Path, certificates: Path, extensions: str, days: int, allowed: bool
) -> None:
    path = web_file(tmp_path, certificates, MUTUAL)
    (tmp_path / "ext").write_text(f"{extensions}\nsubjectAltName = DNS:prometheus.example\n")
    for argv in (
        "req -new -newkey rsa:2048 -nodes -keyout odd.key -subj /CN=odd -out odd.csr",
        "x509 -req -in odd.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext"
        f" -days {days} -out odd.crt",
    ):
        command = ["openssl", *argv.split()]
        await asyncio.to_thread(
            subprocess.run, command, cwd=tmp_path, check=True, capture_output=True
        )
    context = trusting(certificates)
    context.load_cert_chain(tmp_path / "odd.crt", tmp_path / "odd.key")
    async with serving(Scrapes(), web_config=path) as client:
        if allowed:
            assert (await client.get("/metrics", tls=context))[0] == 200
        else:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await client.get("/metrics", tls=context)
    await asyncio.sleep(0)
