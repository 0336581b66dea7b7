"""The web configuration file: every branch of its validation owns a .bad.yml."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from cephqos_base.errors import ConfigError
from cephqos_exporter.web.config import RateLimit, WebConfig, load
from cephqos_exporter.web.tls import server_context

FILES = Path(__file__).parent / "webconfig"


def beside_certificates(name: str, certificates: Path, tmp_path: Path) -> Path:
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    return Path(shutil.copy(FILES / name, tmp_path))


def read(path: Path) -> tuple[WebConfig, ssl.SSLContext | None]:
    config = load(path)
    return config, server_context(config.tls, path) if config.tls else None


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("*.bad.yml")))
def test_a_bad_file_is_refused_in_one_line_that_says_what_is_allowed(
    name: str, certificates: Path, tmp_path: Path
) -> None:
    path = beside_certificates(name, certificates, tmp_path)
    expected = path.read_text().splitlines()[0].removeprefix("# expect: ")
    with pytest.raises(ConfigError) as caught:
        read(path)
    message = str(caught.value)
    assert expected in message
    assert message.startswith(str(path))
    assert "; allowed: " in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "name", [path.name for path in FILES.glob("*.bad.yml") if "hunter2" in path.read_text()]
)
def test_a_password_or_key_is_not_repeated_in_the_error(
    name: str, certificates: Path, tmp_path: Path
) -> None:
    path = beside_certificates(name, certificates, tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert "hunter2" not in str(caught.value)


def test_a_file_with_everything_in_it_is_read(certificates: Path, tmp_path: Path) -> None:
    config, context = read(beside_certificates("full.good.yml", certificates, tmp_path))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert config.rate_limit == RateLimit(interval=90.0, burst=5)
    assert set(config.users) == {"prometheus"}


def test_an_empty_file_switches_nothing_on(tmp_path: Path) -> None:
    path = Path(shutil.copy(FILES / "empty.good.yml", tmp_path))
    assert read(path) == (WebConfig(), None)


def test_certificate_and_key_may_stand_in_the_file(certificates: Path, tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    inline = {name: (certificates / f"server.{name}").read_text() for name in ("crt", "key")}
    indented = {name: text.replace("\n", "\n    ") for name, text in inline.items()}
    path.write_text(
        f"tls_server_config:\n  cert: |\n    {indented['crt']}\n  key: |\n    {indented['key']}\n"
    )
    _, context = read(path)
    assert context is not None


def test_a_directory_in_the_place_of_a_certificate_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: ., key_file: .}")
    with pytest.raises(ConfigError) as caught:
        read(path)
    said = f"cert_file: found {tmp_path}: a directory; allowed: a readable file"
    assert said in str(caught.value)


def test_an_encrypted_key_is_an_error_and_no_question_at_the_terminal(
    certificates: Path, tmp_path: Path
) -> None:
    for name in ("server.crt", "server.key"):
        shutil.copy(certificates / name, tmp_path)
    argv = ["openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", "server.key"]
    subprocess.run([*argv, "-out", "locked.key"], cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: server.crt, key_file: locked.key}")
    with pytest.raises(ConfigError, match="the key is encrypted"):
        read(path)


def test_a_client_authority_may_be_named_in_any_language(
    certificates: Path, tmp_path: Path
) -> None:
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    authority = tmp_path / "ca.crt"
    authority.write_bytes("# Prüfstelle Süd\n".encode() + authority.read_bytes())
    path = tmp_path / "web.yml"
    path.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt,"
        " client_auth_type: RequireAndVerifyClientCert}"
    )
    _, context = read(path)
    assert context is not None
    assert len(context.get_ca_certs()) == 1
