"""What servers answer, within bounds, and why they do not."""

import os
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

# What OpenSSL calls an answer in plain text, by its version.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")


class AnswerTooLarge(Exception):
    """A server's answer is larger than anybody needs; the text says so."""


async def body_within(reply: "aiohttp.ClientResponse", most: int) -> bytes:
    """The body, unpacked: an answer of a few bytes can unpack to more than the memory holds."""
    parts, size = [], 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            raise AnswerTooLarge(f"the answer is larger than {most >> 20} MiB")
    return b"".join(parts)


def in_one_line(error: Exception) -> str:
    """Why a request failed."""
    import aiohttp  # not needed by those who only read bodies

    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer; if this port speaks TLS, try https://"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        # Its errno is OpenSSL's, not the system's.
        return _why_no_tls(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        number, said = error.os_error.errno, error.os_error.strerror
        # A name that is unknown has a number of its own kind, below zero.
        return (os.strerror(number) if number > 0 else str(said)).lower()
    if isinstance(error, aiohttp.ClientResponseError):
        return f"HTTP status {error.status}"
    return " ".join(str(error).split()) or type(error).__name__


def _why_no_tls(error: OSError) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason in _NO_TLS or isinstance(error, ssl.SSLEOFError):
        return "this port does not speak TLS; try http://"
    return f"TLS failed: {reason.replace('_', ' ').lower()}"
