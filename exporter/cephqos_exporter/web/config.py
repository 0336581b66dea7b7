"""The web configuration file: the schema of exporter-toolkit, checked key by key.

What that schema allows and this server cannot do is refused, not ignored: a setting about security
must never be believed to act when it does not.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import MISSING, UNKNOWN_KEY, ConfigError, Described
from cephqos_exporter.config import load_yaml

TLS_VERSIONS: Final = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}

# Go's names (the schema's) and OpenSSL's. TLS 1.3 suites cannot be chosen in either.
CIPHER_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
}

# OpenSSL's names. X25519 cannot be forced through Python's ssl module.
CURVES: Final = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1"}

CLIENT_AUTH_TYPES: Final = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

# None: any value.
HEADERS: Final[Mapping[str, tuple[str, ...] | None]] = {
    "Content-Security-Policy": None,
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-Content-Type-Options": ("nosniff",),
    "X-XSS-Protection": None,
    "Strict-Transport-Security": None,
}

_BCRYPT_HASH: Final = re.compile(r"\$2[aby]?\$\d\d\$[./A-Za-z0-9]{53}")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+|0")
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}


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
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    curve_preferences: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """A token bucket: `burst` requests at once, then one per `interval` seconds."""

    interval: float = 0.0
    burst: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class WebConfig:
    """The whole file, checked."""

    tls: TlsConfig | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    rate_limit: RateLimit = field(default_factory=RateLimit)


def load(path: Path) -> WebConfig:
    """Read and check a web configuration file; ConfigError tells the first thing wrong."""
    return _Reader(path).web(load_yaml(path))


class _Reader:
    """Checks the parts; knows the file's name for errors."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _error(self, key: str, found: object, allowed: str) -> ConfigError:
        return ConfigError(where=self._path, key=key, found=found, allowed=allowed)

    def _section(
        self, node: object, name: str, parsers: Mapping[str, Callable[[str, Any], Any]]
    ) -> dict[str, Any]:
        """Every key checked by its parser; unknown ones refused."""
        if node is None:
            return {}
        if not isinstance(node, dict):
            raise self._error(name, node, "a mapping of keys")
        result = {}
        for key, value in node.items():
            full = f"{name}.{key}" if name else str(key)
            if key not in parsers:
                raise self._error(full, UNKNOWN_KEY, ", ".join(sorted(parsers)))
            if value is not None:
                result[key] = parsers[key](full, value)
        return result

    def web(self, document: Mapping[str, Any]) -> WebConfig:
        parts = self._section(
            document,
            "",
            {
                "tls_server_config": lambda _, value: self._tls(value),
                "http_server_config": lambda _, value: self._http(value),
                "basic_auth_users": self._users,
                "rate_limit": lambda _, value: self._rate_limit(value),
            },
        )
        return WebConfig(
            tls=parts.get("tls_server_config"),
            headers=parts.get("http_server_config", {}),
            users=parts.get("basic_auth_users", {}),
            rate_limit=parts.get("rate_limit", RateLimit()),
        )

    def _http(self, node: object) -> Mapping[str, str]:
        # http2 is a permission, not a promise: a server that speaks 1.1 alone honours both values.
        parts = self._section(node, "http_server_config", {"http2": self._flag, "headers": _as_is})
        headers = parts.get("headers", {})
        name = "http_server_config.headers"
        if not isinstance(headers, dict):
            raise self._error(name, headers, "a mapping of header names to values")
        for header, value in headers.items():
            if header not in HEADERS:
                raise self._error(f"{name}.{header}", UNKNOWN_KEY, ", ".join(HEADERS))
            self._text(f"{name}.{header}", value)
            allowed = HEADERS[header]
            if value and allowed is not None and value not in allowed:
                raise self._error(f"{name}.{header}", value, ", ".join(allowed))
        return {header: value for header, value in headers.items() if value}

    def _users(self, name: str, node: object) -> Mapping[str, str]:
        if not isinstance(node, dict):
            raise self._error(name, node, "a mapping of user names to bcrypt hashes")
        for user, hashed in node.items():
            if not isinstance(user, str) or not isinstance(hashed, str):
                raise self._error(f"{name}.{user}", Described("no text"), "a bcrypt hash")
            if not _BCRYPT_HASH.fullmatch(hashed):
                # The value may be a password given in the clear: it must not reach a log.
                found = Described("something else (not shown)")
                raise self._error(f"{name}.{user}", found, "a bcrypt hash such as $2b$10$…")
        return dict(node)

    def _rate_limit(self, node: object) -> RateLimit:
        parts = self._section(
            node, "rate_limit", {"interval": self._duration, "burst": self._count}
        )
        return RateLimit(**parts)

    def _tls(self, node: object) -> TlsConfig | None:
        parts = self._section(
            node,
            "tls_server_config",
            {
                "cert_file": self._file,
                "key_file": self._file,
                "client_ca_file": self._file,
                "cert": self._text,
                "key": self._text,
                "client_ca": self._text,
                "client_auth_type": self._client_auth,
                "client_allowed_sans": self._texts,
                "min_version": self._one_of(TLS_VERSIONS),
                "max_version": self._one_of(TLS_VERSIONS),
                "cipher_suites": self._many_of(CIPHER_SUITES),
                "curve_preferences": self._curves,
                "prefer_server_cipher_suites": self._flag,
            },
        )
        # As in exporter-toolkit, TLS is on if one of these says anything at all.
        signs = ("cert_file", "cert", "key_file", "key", "client_ca_file", "client_ca")
        if not any(parts.get(sign) for sign in (*signs, "client_auth_type")):
            if parts:
                raise self._error("tls_server_config", Described("no certificate"), "cert_file")
            return None
        tls = TlsConfig(**parts)
        self._check_pairs(tls)
        return tls

    def _check_pairs(self, tls: TlsConfig) -> None:
        """What is only wrong in combination."""
        section = "tls_server_config"
        for name in ("cert", "key"):
            inline, file = getattr(tls, name), getattr(tls, f"{name}_file")
            if not inline and not file:
                raise self._error(f"{section}.{name}_file", MISSING, f"{name}_file or {name}")
            if inline and file:
                both = Described(f"{name} as well as {name}_file")
                raise self._error(f"{section}.{name}", both, "one of the two")
        authority = tls.client_ca_file or tls.client_ca
        if authority and tls.client_auth_type == "NoClientCert":
            allowed = "VerifyClientCertIfGiven or RequireAndVerifyClientCert with a client CA"
            raise self._error(f"{section}.client_auth_type", tls.client_auth_type, allowed)
        if tls.client_auth_type != "NoClientCert" and not authority:
            allowed = f"client_ca_file or client_ca with {tls.client_auth_type}"
            raise self._error(f"{section}.client_ca_file", MISSING, allowed)
        if tls.client_allowed_sans and tls.client_auth_type != "RequireAndVerifyClientCert":
            allowed = "RequireAndVerifyClientCert with client_allowed_sans"
            raise self._error(f"{section}.client_auth_type", tls.client_auth_type, allowed)
        if TLS_VERSIONS[tls.min_version] > TLS_VERSIONS[tls.max_version]:
            allowed = f"at most max_version, {tls.max_version}"
            raise self._error(f"{section}.min_version", tls.min_version, allowed)

    def _client_auth(self, key: str, value: Any) -> str:
        if value in ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert"):
            found = Described(f"{value!r}, which takes certificates without verifying them")
            raise self._error(key, found, ", ".join(CLIENT_AUTH_TYPES))
        return self._one_of(CLIENT_AUTH_TYPES)(key, value)

    def _curves(self, key: str, value: Any) -> tuple[str, ...]:
        curves = self._many_of(CURVES)(key, value)
        if len(curves) > 1:
            raise self._error(key, list(curves), f"one of {', '.join(CURVES)}")
        return curves

    def _text(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self._error(key, value, "text")
        return value

    def _texts(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, value, "a list of texts")
        return tuple(value)

    def _flag(self, key: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._error(key, value, "true or false")
        return value

    def _count(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._error(key, value, "a whole number, 0 or more")
        return value

    def _duration(self, key: str, value: Any) -> float:
        text = str(value) if not isinstance(value, bool) else ""
        if not _DURATION.fullmatch(text):
            raise self._error(key, value, "a duration such as 500ms, 1s or 1m30s")
        return sum(float(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(text))

    def _file(self, key: str, value: Any) -> str:
        path = self._path.parent / self._text(key, value)
        try:
            path.read_bytes()
        except OSError as exc:
            found = Described(f"{path}: {exc.strerror}")
            raise self._error(key, found, "a readable file") from exc
        return str(path)

    def _one_of(self, names: Mapping[str, Any]) -> Callable[[str, Any], str]:
        def parse(key: str, value: Any) -> str:
            if not isinstance(value, str) or value not in names:
                raise self._error(key, value, ", ".join(names))
            return value

        return parse

    def _many_of(self, names: Mapping[str, Any]) -> Callable[[str, Any], tuple[str, ...]]:
        def parse(key: str, value: Any) -> tuple[str, ...]:
            one = self._one_of(names)
            return tuple(one(key, item) for item in self._texts(key, value))

        return parse


def _as_is(_key: str, value: Any) -> Any:
    return value
