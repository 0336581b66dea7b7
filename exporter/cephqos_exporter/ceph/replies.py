"""A daemon's reply as objects, if it is one that a daemon would give."""

from typing import Any, Final

import orjson

from cephqos_exporter.daemon_errors import ErrorReply, Malformed, TooLarge, UnknownCommand

# As objects, replies are ten times their size, and `{}` thirty times. So the values of a reply are
# bounded, not its bytes: each value takes about 100 bytes. Schemas have 12,000.
MAX_VALUES: Final = 500_000

_CHECKED_FROM: Final = 2 * MAX_VALUES  # bytes; a shorter reply cannot have more values
_LARGEST_REPAIRED: Final = 4 << 20  # bytes; 500 operations are 1 MB
_NO_SEPARATORS: Final = bytes(set(range(256)) - set(b",[{"))


def _check_size(body: bytes | bytearray) -> None:
    """TooLarge, before it is parsed, if a reply has too many values."""
    if len(body) > _CHECKED_FROM:
        values = len(body.translate(None, _NO_SEPARATORS))
        if values > MAX_VALUES:
            raise TooLarge(f"about {values} values; the cap is {MAX_VALUES}")


def _parsed(body: bytes | bytearray) -> Any:
    """The reply as objects. Bytes that are not UTF-8 are replaced: clients choose object names."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:_LARGEST_REPAIRED].decode(errors="replace")
        if len(body) > _LARGEST_REPAIRED or "\N{REPLACEMENT CHARACTER}" not in text:
            raise
    return orjson.loads(text)


def decode_reply(body: bytes | bytearray) -> Any:
    """Parse a reply. UnknownCommand or ErrorReply if it is an error text, else Malformed."""
    if not body:
        raise Malformed("empty reply")
    _check_size(body)
    try:
        return _parsed(body)
    except orjson.JSONDecodeError as exc:
        text = bytes(body[:300]).decode("utf-8", "replace").strip()
        if not text.startswith("ERROR: ("):
            raise Malformed(f"not JSON: {exc}") from exc
        message = " ".join(text.split())
        # Releases word it differently; all of them use EINVAL and say that they do not know it.
        if "unknown command" in message or "unrecognized command" in message:
            raise UnknownCommand(message) from exc
        raise ErrorReply(message) from exc
