"""The web configuration file: a part of the schema of exporter-toolkit, checked key by key.

The rest of that schema is refused, not ignored: a setting about security must never be believed to
act when it does not. The error says what to do instead.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cephqos_base import textfile, units
from cephqos_base.errors import MISSING, ConfigError, Described

if TYPE_CHECKING:
    from cephqos_base.yamlfile import Value

# TLS 1.0 and 1.1 are the schema's too; OpenSSL as it is built today completes neither.
TLS_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}

CLIENT_AUTH_TYPES: Final = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

_PROXY: Final = "a reverse proxy in front of the exporter can do this"
# Keys of exporter-toolkit that this server does not have, and what to do instead.
NOT_HERE: Final = {
    "http_server_config": f"no such key: answers are HTTP/1.1 without added headers; {_PROXY}",
    "cipher_suites": f"no such key: OpenSSL chooses, min_version: TLS13 allows less; {_PROXY}",
    "curve_preferences": f"no such key: OpenSSL chooses; {_PROXY}",
    "prefer_server_cipher_suites": f"no such key: OpenSSL chooses; {_PROXY}",
    "client_allowed_sans": "no such key: use a client_ca_file whose CA signs only the clients"
    f" that may read, or {_PROXY}",
}

# A cost above 16 takes 5 s and more for each check, which is a way to stop a server.
_BCRYPT_HASH: Final = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}")
# Of what may be a secret in the clear: it must not reach a log.
_HIDDEN: Final = Described("something else (not shown)")


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsConfig:
    """`tls_server_config`, checked; relative paths are relative to the file's directory."""

    cert_file: str = ""
    key_file: str = ""
    cert: str = ""
    key: str = field(default="", repr=False)
    client_auth_type: str = "NoClientCert"
    client_ca_file: str = ""
    client_ca: str = ""
    min_version: str = "TLS12"
    max_version: str = "TLS13"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """A token bucket: `burst` requests at once, then one per `interval` seconds."""

    interval: float = 0.0
    burst: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WebConfig:
    """The whole file, checked."""

    tls: TlsConfig | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    rate_limit: RateLimit = field(default_factory=RateLimit)


Parser = Callable[["Value"], Any]


def load(path: Path) -> WebConfig:
    """Read and check a web configuration file; ConfigError tells the first thing wrong."""
    from cephqos_base import yamlfile

    try:
        document = yamlfile.read(path)
    except ConfigError as exc:
        if exc.line is None or "'" not in str(exc):
            raise
        # It quotes the file: a password that begins with ! or * is a tag or an alias in YAML.
        found = Described("a mistake (not shown: it may be part of a password)")
        allowed = "valid YAML, with quotes around what begins with ! & or *"
        raise ConfigError(where=path, line=exc.line, key="", found=found, allowed=allowed) from None
    return _Reader(path.parent).web(document)


class _Reader:
    """Checks the parts; knows the directory that relative paths are relative to."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def web(self, document: "Value") -> WebConfig:
        parts = _section(
            document,
            {
                "tls_server_config": self._tls,
                "basic_auth_users": _users,
                "rate_limit": _rate_limit,
            },
        )
        return WebConfig(
            tls=parts.get("tls_server_config"),
            users=parts.get("basic_auth_users", {}),
            rate_limit=parts.get("rate_limit", RateLimit()),
        )

    def _tls(self, node: "Value") -> TlsConfig:
        parts = _section(
            node,
            {
                "cert_file": self._file,
                "key_file": self._file,
                "client_ca_file": self._file,
                "cert": _string,
                "key": _secret,
                "client_ca": _string,
                "client_auth_type": _client_auth,
                "min_version": _one_of(TLS_VERSIONS),
                "max_version": _one_of(TLS_VERSIONS),
            },
        )
        # As in exporter-toolkit, TLS is on if one of these says anything at all.
        signs = ("cert_file", "cert", "key_file", "key", "client_ca_file", "client_ca")
        if not any(parts.get(sign) for sign in (*signs, "client_auth_type")):
            node.fail("cert_file and key_file, or no such section", "no certificate")
        tls = TlsConfig(**parts)
        _check_pairs(node, tls)
        return tls

    def _file(self, value: "Value") -> str:
        path = self._directory / value.string()
        try:
            textfile.regular_file(path).read_bytes()
        except OSError as exc:
            raise value.error(
                Described(f"{path}: {textfile.found_instead(exc)}"), "a readable file"
            ) from exc
        return str(path)


# The author of one of these expects protection from it, so an empty one is refused.
_PROTECTING: Final = frozenset({"tls_server_config", "basic_auth_users"})


def _section(node: "Value", parsers: Mapping[str, Parser]) -> dict[str, Any]:
    """Every key checked by its parser; unknown ones refused, empty ones as if not there."""
    if node.is_null:
        return {}
    for key, value in node.entries("a mapping of keys").items():
        if key in NOT_HERE and key not in parsers:
            raise value.error(Described("a key that only exporter-toolkit has"), NOT_HERE[key])
    table = node.table(sorted(parsers), mapping="a mapping of keys")
    return {
        key: parsers[key](value)
        for key, value in table.items()
        if not value.is_null or key in _PROTECTING
    }


def _users(node: "Value") -> Mapping[str, str]:
    if node.is_null or (node.is_mapping and not node.entries()):
        node.fail("at least one user, or no such key", "no user")
    if not node.is_mapping:
        node.fail("a mapping of user names to bcrypt hashes", _HIDDEN)
    users = {}
    for user, value in node.entries().items():
        if ":" in user:  # as in {user:password}, which lacks a space
            node.fail("user names without a colon, which ends them", _HIDDEN)
        if not value.is_string:
            value.fail("a bcrypt hash", "no text")
        if not _can_match(value.string()):
            value.fail("a bcrypt hash such as $2b$10$…, of a cost from 4 to 16", _HIDDEN)
        users[user] = value.string()
    return users


def _can_match(text: str) -> bool:
    """Whether it is a bcrypt hash that some password has: it may have been cut or mistyped."""
    import bcrypt

    if not _BCRYPT_HASH.fullmatch(text):
        return False
    salt = text[7:29]
    try:
        return bcrypt.hashpw(b"", f"$2b$04${salt}".encode())[7:29] == salt.encode()
    except ValueError:
        return False


def _string(value: "Value") -> str:
    return value.string()


def _secret(value: "Value") -> str:
    if not value.is_string:
        value.fail("text", _HIDDEN)
    return value.string()


def _rate_limit(node: "Value") -> RateLimit:
    def count(value: "Value") -> int:
        return value.integer(allowed="a whole number, 0 or more")

    limit = RateLimit(**_section(node, {"interval": _duration, "burst": count}))
    if bool(limit.interval) != bool(limit.burst):  # no limit at all, or no request ever passes
        missing = "burst" if limit.interval else "interval"
        allowed = "interval and burst, both above 0"
        raise node.error(MISSING, allowed, key=f"{node.key}.{missing}")
    return limit


def _check_pairs(node: "Value", tls: TlsConfig) -> None:
    """What is only wrong in combination."""

    def wrong(key: str, found: object, allowed: str) -> ConfigError:
        return node.error(found, allowed, key=f"{node.key}.{key}")

    for name in ("cert", "key", "client_ca"):
        inline, file = getattr(tls, name), getattr(tls, f"{name}_file")
        if not inline and not file and name != "client_ca":
            raise wrong(f"{name}_file", MISSING, f"{name}_file or {name}")
        if inline and file:
            raise wrong(name, Described(f"{name} as well as {name}_file"), "one of the two")
    authority = tls.client_ca_file or tls.client_ca
    if authority and tls.client_auth_type == "NoClientCert":
        allowed = "VerifyClientCertIfGiven or RequireAndVerifyClientCert with a client CA"
        raise wrong("client_auth_type", tls.client_auth_type, allowed)
    if tls.client_auth_type != "NoClientCert" and not authority:
        allowed = f"client_ca_file or client_ca with {tls.client_auth_type}"
        raise wrong("client_ca_file", MISSING, allowed)
    if TLS_VERSIONS[tls.min_version] > TLS_VERSIONS[tls.max_version]:
        raise wrong("min_version", tls.min_version, f"at most max_version, {tls.max_version}")


def _client_auth(value: "Value") -> str:
    text = value.string()
    if text in ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert"):
        found = f"{text!r}, which takes certificates without verifying them"
        value.fail(", ".join(CLIENT_AUTH_TYPES), found)
    return value.choice(tuple(CLIENT_AUTH_TYPES))


def _duration(value: "Value") -> float:
    """As Go writes it: only 0 has no unit, and there are no days."""
    allowed = "a duration such as 500ms or 1m30s"
    text = value.text(r"(?:[0-9]{1,15}(?:\.[0-9]{1,15})?(?:ns|us|µs|ms|s|m|h)){1,6}|0", allowed)
    return units.parse_seconds(text)


def _one_of(names: Mapping[str, Any]) -> Callable[["Value"], str]:
    return lambda value: value.choice(tuple(names))
