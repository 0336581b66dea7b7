"""Why a request failed, in words that help."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from cephqos_base.answers import in_one_line


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Answers in plain text, or closes the connection where it is asked for /close."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/close" not in await reader.read(4096):
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nthis is no TLS\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1:{port}/", "this port does not speak TLS; try http://"),
        ("http://127.0.0.1:{port}/close", "if this port speaks TLS, try https://"),
        ("http://127.0.0.1:1/", "connection refused"),
    ],
)
async def test_a_wrong_scheme_is_named(port: int, url: str, said: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            await session.get(url.format(port=port))
    assert said in in_one_line(caught.value)
