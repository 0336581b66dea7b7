"""The answers of HTTP servers: bodies of bounded size, and why a request failed."""

import os
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

# OpenSSL's reasons for an answer in plain text; which one depends on its version.
_REASONS_WITHOUT_TLS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
    "HTTP_REQUEST",
)


class AnswerTooLarge(Exception):
    """A server's answer is larger than anybody needs; the text says so."""


async def body_within(reply: "aiohttp.ClientResponse", most_bytes: int) -> bytes:
    """The unpacked body; AnswerTooLarge above the bound: a few bytes may unpack to gigabytes."""
    parts, size = [], 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            raise AnswerTooLarge(f"the answer is larger than {most_bytes >> 20} MiB")
    return b"".join(parts)


def in_one_line(error: Exception) -> str:
    """Why a request failed, in words that end an error message."""
    import aiohttp  # not needed by those who only read bodies

    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer; if this port speaks TLS, try https://"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        # Its errno is OpenSSL's, not the system's.
        return _tls_failure(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        number, text = error.os_error.errno, error.os_error.strerror
        # For an unknown host name the number is getaddrinfo's, below zero: strerror has no text.
        return (os.strerror(number) if number > 0 else str(text)).lower()
    if isinstance(error, aiohttp.ClientResponseError):
        return f"HTTP status {error.status}"
    return " ".join(str(error).split()) or type(error).__name__


def _tls_failure(error: OSError) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason in _REASONS_WITHOUT_TLS or isinstance(error, ssl.SSLEOFError):
        return "this port does not speak TLS; try http://"
    return f"TLS failed: {reason.replace('_', ' ').lower()}"
