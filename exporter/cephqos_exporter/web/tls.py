"""A server's TLS context from a checked configuration."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cephqos_base import textfile
from cephqos_base.errors import ConfigError, Described
from cephqos_exporter.web.config import CLIENT_AUTH_TYPES, TLS_VERSIONS, TlsConfig

# OpenSSL's words for what people get wrong, and ours.
_SSL_REASONS = {
    "key values mismatch": "the key of another certificate",
    "PEM lib": "something that is no certificate or no key in PEM form",
    "no certificate or crl found": "something without a certificate",
    "does not contain a certificate": "something without a certificate",
}
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Credentials:
    """A server's TLS context and the files that it is made from; ConfigError if they are wrong."""

    def __init__(self, tls: TlsConfig, where: Path) -> None:
        self._tls = tls
        self._where = where
        self._certificate = self._content("cert_file", tls.cert_file, tls.cert)
        self._key = self._content("key_file", tls.key_file, tls.key)
        self._authority = self._content("client_ca_file", tls.client_ca_file, tls.client_ca)
        self.context = self._make()

    def _content(self, key: str, file: str, inline: str) -> bytes:
        try:
            return textfile.regular_file(Path(file)).read_bytes() if file else inline.encode()
        except OSError as exc:
            raise _bad(
                self._where, key, f"{file}: {textfile.found_instead(exc)}", "a readable file"
            ) from exc

    def _make(self) -> ssl.SSLContext:
        tls = self._tls
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = TLS_VERSIONS[tls.min_version]
        context.maximum_version = TLS_VERSIONS[tls.max_version]
        self._load(context)
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.verify_mode = CLIENT_AUTH_TYPES[tls.client_auth_type]
        return context

    def to_equals(self) -> ssl.SSLContext:
        """A client's context to reach exporters that have this same certificate. Only that one is
        trusted, so their names need not be in it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        text = self._certificate.decode("ascii", "replace")
        leaf = text[text.index(_BEGIN) : text.index(_END) + len(_END)]
        context.load_verify_locations(cadata=leaf)
        with _as_file(self._certificate) as certificate, _as_file(self._key) as key:
            context.load_cert_chain(certificate, key, password=_no_password)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            with _as_file(self._certificate) as certificate, _as_file(self._key) as key:
                context.load_cert_chain(certificate, key, password=_no_password)
        except (OSError, ValueError) as exc:
            allowed = "a PEM certificate and the key to it"
            raise _bad(self._where, "cert_file", str(exc), allowed) from exc
        if self._tls.client_auth_type == "NoClientCert":
            return
        # Between certificates there may be names in any language; Python takes ASCII only.
        text = self._authority.decode("ascii", "replace").replace("\ufffd", "?")
        try:
            context.load_verify_locations(cadata=text)
        except (OSError, ValueError) as exc:
            raise _bad(self._where, "client_ca_file", str(exc), "PEM certificates") from exc


def server_context(tls: TlsConfig, where: Path) -> ssl.SSLContext:
    """The context to serve with; ConfigError if certificate, key or CA are no good."""
    return Credentials(tls, where).context


def _bad(where: Path, key: str, reason: str, allowed: str) -> ConfigError:
    """`reason`: OpenSSL's or the system's; a few of OpenSSL's are put into plain words."""
    words = (plain for openssls, plain in _SSL_REASONS.items() if openssls in reason)
    found = Described(next(words, reason))
    return ConfigError(where=where, key=f"tls_server_config.{key}", found=found, allowed=allowed)


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path of the content in memory, as Python's ssl reads only files. It is on no disk."""
    fd = os.memfd_create("cephqos-tls")
    try:
        os.write(fd, content)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
