"""The page of buttons: what it shows, and whom it refuses."""

import asyncio
from typing import Any

import aiohttp
import pytest
from tests.unit.deploy.programs import program

from cephqos_base.errors import UsageError
from cephqos_stack.demo.buttons import buttons

from .demo_lab import DemoLab


class _Provoker:
    """Remembers what was pressed."""

    closed, going_on, card = "", "slow-device", ["cpu-limit: right after 12 s"]

    def __init__(self) -> None:
        self.pressed = asyncio.Queue[str]()

    def press(self, name: str) -> None:
        self.pressed.put_nowait(name)


async def test_only_the_page_itself_can_press_a_button() -> None:
    provoker: Any = _Provoker()
    async with (
        buttons("127.0.0.1:0", provoker, lambda: ["FIRING: <b>"]) as url,
        aiohttp.ClientSession() as session,
    ):
        own = url.rstrip("/")

        async def asked(method: str, name: str = "", **headers: str) -> int:
            data = {"name": name} if name else None
            async with session.request(
                method, url, data=data, headers=headers, allow_redirects=False
            ) as reply:
                return reply.status

        async with session.get(url) as reply:
            text = await reply.text()
            assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]
        assert "FIRING: &lt;b&gt;" in text and "cpu-limit: right after 12 s" in text
        assert '<button name="name" value="slow-device" class="on">' in text
        assert text.count("<button") == 11 and "<script" not in text
        # Another page's form, no Origin at all, and a foreign name that points here.
        assert await asked("POST", "slow-device", Origin="http://evil.example") == 403
        assert await asked("POST", "slow-device", Origin="null") == 403
        assert await asked("POST", "slow-device") == 403
        assert await asked("GET", Host="evil.example") == 403
        assert await asked("POST", "slow-device", Host="evil.example", Origin=own) == 403
        assert await asked("GET", Host="localhost") == 403, "another port is another page"
        assert await asked("POST", "rm", Origin=own) == 400
        assert await asked("PUT", "slow-device", Origin=own) == 405
        assert provoker.pressed.empty()
        assert await asked("POST", "stopped-osd", Origin=own) == 303
        async with asyncio.timeout(30):
            assert await provoker.pressed.get() == "stopped-osd"


@pytest.mark.parametrize("address", ["0.0.0.0:0", ":10134", "10134", "example.org:80", "[::]:0"])
async def test_the_page_is_served_on_loopback_only(address: str) -> None:
    provoker: Any = _Provoker()
    with pytest.raises(UsageError, match="expected a free port of loopback"):
        async with buttons(address, provoker, list):
            pass


async def test_the_lab_of_the_compose_stack_sets_what_was_measured_as_capacity() -> None:
    lab: Any = DemoLab()
    assert await program("compose/lab.py").measure(lab) == 400
    assert lab.said[-1] == "ceph config set osd osd_mclock_max_capacity_iops_ssd 400"
