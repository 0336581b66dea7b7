"""The web configuration file: every branch of its validation owns a .bad.yml."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from cephqos_base.errors import ConfigError
from cephqos_exporter.web.config import CIPHER_SUITES, RateLimit, WebConfig, load
from cephqos_exporter.web.tls import names_of, server_context

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
    assert [c["name"] for c in context.get_ciphers() if c["protocol"] == "TLSv1.2"] == [
        "ECDHE-RSA-AES128-GCM-SHA256"
    ]
    assert config.rate_limit == RateLimit(interval=90.0, burst=5)
    assert "Strict-Transport-Security" not in config.headers  # blank: unset
    assert config.headers["X-Frame-Options"] == "deny"
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


def test_suites_that_openssl_does_not_have_are_an_error_in_one_line(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host's policy for cryptography may take suites away."""
    name = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    monkeypatch.setitem(CIPHER_SUITES, name, "NO-SUCH-SUITE")
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "web.yml"
    path.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key,"
        f" cipher_suites: [{name}]}}"
    )
    with pytest.raises(ConfigError, match=r"tls_server_config\.cipher_suites: found"):
        read(path)


def test_names_of_a_certificate_are_written_as_everybody_writes_them() -> None:
    certificate = {
        "subjectAltName": (
            ("DNS", "prometheus"),
            ("IP Address", "2001:DB8:0:0:0:0:0:1"),
            ("IP Address", "0:0:0:0:0:FFFF:A00:1"),
            ("URI", "spiffe://a/b"),
            ("email", "a@b"),
            ("Registered ID", "1.2.3.4"),
            ("DirName", ((("commonName", "x"),),)),
        )
    }
    expected = {"prometheus", "2001:db8::1", "10.0.0.1", "spiffe://a/b", "a@b"}
    assert names_of(certificate) == expected
    assert names_of(None) == set()
