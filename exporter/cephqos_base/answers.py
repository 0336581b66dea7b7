"""What servers answer, within bounds."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp


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
