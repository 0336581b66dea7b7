"""Headless Chromium, driven by the DevTools protocol: as much of it as looking at a page needs."""

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp

from cephqos_loadgen.processes import in_background

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_CALL_SECONDS = 60.0
_CLOSE_SECONDS = 10.0
# Grafana's menu at the left, folded as most people have it.
_NARROW_MENU = "localStorage.setItem('grafana.navigation.docked', 'false')"


class BrowserError(Exception):
    """The browser refused a command, or a page threw an exception."""


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@dataclass
class Tab:
    """One page: what it loads, what it refuses, what it looks like."""

    browser: "Browser"
    session: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)  # of requests, by their id
    requests: list[str] = field(default_factory=list)  # their addresses, refused ones too
    errors: list[str] = field(
        default_factory=list
    )  # of scripts, and what the page's policy refused

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self.browser.call(method, session=self.session, **parameters)

    async def size(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def headers(self, headers: Mapping[str, str]) -> None:
        """Headers of every request."""
        if headers:
            await self.call("Network.setExtraHTTPHeaders", headers=dict(headers))

    async def open(self, url: str) -> None:
        for noted in (self.answers, self.requests, self.errors):
            noted.clear()
        await self.call("Page.navigate", url=url)

    async def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    async def picture(self, file: Path) -> None:
        found = await self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(found["data"]))

    def refused(self, part: str) -> list[str]:
        """Requests to addresses with this part that were answered with an error."""
        return [
            f"{answer['status']} {answer['url']}"
            for answer in self.answers.values()
            if part in answer["url"] and answer["status"] >= 400
        ]


class Browser:
    """A running Chromium. Use `browser()`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    async def call(self, method: str, *, session: str = "", **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_str(json.dumps(message))
        async with asyncio.timeout(_CALL_SECONDS):
            return await self._waiting[number]

    async def close(self) -> None:
        """Ask Chromium to end. It may be gone before it answers."""
        message = {"id": next(self._numbers), "method": "Browser.close"}
        await self._socket.send_str(json.dumps(message))

    async def tab(self) -> Tab:
        target = await self.call("Target.createTarget", url="about:blank")
        attached = await self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Page", "Network", "Runtime", "Log"):
            await tab.call(f"{domain}.enable")
        await tab.call("Page.addScriptToEvaluateOnNewDocument", source=_NARROW_MENU)
        return tab

    async def _read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            if waiting := self._waiting.pop(found.get("id", 0), None):
                if "error" in found:
                    waiting.set_exception(BrowserError(str(found["error"])))
                else:
                    waiting.set_result(found["result"])
            elif "method" in found:
                self._note(found)

    def _note(self, event: dict[str, Any]) -> None:
        tab, said = self._tabs.get(event.get("sessionId", "")), event["params"]
        if tab is None:
            return
        match event["method"]:
            case "Network.responseReceived":
                tab.answers[said["requestId"]] = said["response"]
            case "Network.requestWillBeSent":
                tab.requests.append(said["request"]["url"])
            case "Runtime.exceptionThrown":
                tab.errors.append(json.dumps(said["exceptionDetails"]))
            case "Log.entryAdded" if said["entry"]["level"] == "error":
                tab.errors.append(said["entry"]["text"])


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Browser]:
    """Chromium with a profile of its own in this folder."""
    program = find_chromium()
    if program is None:
        raise BrowserError("no Chromium found: apt-get install chromium")
    profile = folder / "profile"
    argv = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    async with in_background(argv, folder / "chromium.out") as process:
        address = await _address(profile / "DevToolsActivePort", folder / "chromium.out")
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
            Browser(socket) as opened,
        ):
            try:
                yield opened
            finally:
                # Ended by a signal, it leaves its socket in the temporary directory.
                with contextlib.suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                    await opened.close()
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await process.wait()


async def _address(file: Path, output: Path) -> str:
    """Chromium writes its port and path into a file when it listens."""
    for _ in range(600):
        if file.is_file() and len(lines := file.read_text().split()) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        await asyncio.sleep(0.1)
    raise BrowserError(f"Chromium did not start: {output.read_text(errors='replace')[-500:]}")
