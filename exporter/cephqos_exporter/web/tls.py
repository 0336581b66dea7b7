"""A server's TLS context from a checked configuration, and the check of clients' names."""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cephqos_base.errors import ConfigError, Described
from cephqos_exporter.web.config import (
    CIPHER_SUITES,
    CLIENT_AUTH_TYPES,
    CURVES,
    TLS_VERSIONS,
    TlsConfig,
)

# OpenSSL's words for what people get wrong, and ours.
_SSL_REASONS = {
    "key values mismatch": "the key of another certificate",
    "PEM lib": "something that is no certificate or no key in PEM form",
    "no certificate or crl found": "something without a certificate",
    "does not contain a certificate": "something without a certificate",
}


def server_context(tls: TlsConfig, where: Path) -> ssl.SSLContext:
    """The context to serve with; ConfigError if certificate, key or CA are no good."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = TLS_VERSIONS[tls.min_version]
    context.maximum_version = TLS_VERSIONS[tls.max_version]
    ciphers = [CIPHER_SUITES[name] for name in tls.cipher_suites if CIPHER_SUITES[name]]
    if ciphers:
        context.set_ciphers(":".join(ciphers))
    if tls.prefer_server_cipher_suites:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if tls.curve_preferences:
        context.set_ecdh_curve(CURVES[tls.curve_preferences[0]])
    _load_certificates(context, tls, where)
    # Nothing here needs them, and they would let a client resume what a new CA no longer allows.
    context.options |= ssl.OP_NO_TICKET
    context.verify_mode = CLIENT_AUTH_TYPES[tls.client_auth_type]
    return context


def _load_certificates(context: ssl.SSLContext, tls: TlsConfig, where: Path) -> None:
    try:
        with _pair(tls) as (certificate, key):
            context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as exc:
        raise _bad(where, "cert_file", exc, "a PEM certificate and the key to it") from exc
    if tls.client_auth_type == "NoClientCert":
        return
    try:
        context.load_verify_locations(tls.client_ca_file or None, cadata=tls.client_ca or None)
    except (OSError, ValueError) as exc:
        raise _bad(where, "client_ca_file", exc, "PEM certificates") from exc


def _bad(where: Path, key: str, exc: Exception, allowed: str) -> ConfigError:
    said = str(exc)
    found = Described(next((ours for theirs, ours in _SSL_REASONS.items() if theirs in said), said))
    return ConfigError(where=where, key=f"tls_server_config.{key}", found=found, allowed=allowed)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def _pair(tls: TlsConfig) -> Iterator[tuple[str, str]]:
    """Paths of certificate and key; inline ones go through files, as Python's ssl reads no text."""
    with tempfile.TemporaryDirectory(prefix="cephqos-tls-") as directory:  # mode 0700
        paths = []
        for name, file, inline in (
            ("cert", tls.cert_file, tls.cert),
            ("key", tls.key_file, tls.key),
        ):
            path = Path(file or f"{directory}/{name}.pem")
            if not file:
                path.write_text(inline)
            paths.append(str(path))
        yield paths[0], paths[1]


def names_of(certificate: dict[str, Any] | None) -> set[str]:
    """The subject alternative names of a peer's certificate, as getpeercert() gives it."""
    return {str(value) for _, value in (certificate or {}).get("subjectAltName", ())}
