"""A Grafana that runs already. Our dashboards are added to it, and removed at the end."""

import contextlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from cephqos_base import yamlfile
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_dashboards.cli import installed
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.progress import Say
from cephqos_stack.grafana.place import Grafana

_SECONDS: Final = 30.0  # for a request


class OtherGrafana(Grafana):
    """Dashboards get uids with a random prefix, so that those that it already has stay."""

    def __init__(self, url: str, token: str = "") -> None:
        self._address = Address.parse(url, "GRAFANA_URL", 3000).with_token(token)
        super().__init__(self._address.url, prefix=f"{secrets.token_hex(3)}-")
        self.headers = self._address.headers

    @contextlib.asynccontextmanager
    async def showing(
        self, sources: Sources, folder: Path, say: Say = lambda _: None
    ) -> AsyncIterator[None]:
        files = installed(folder, sources)
        say(f"dashboards are put into {self.url}")
        async with (
            HttpServer(self._address, within=_SECONDS) as server,
            contextlib.AsyncExitStack() as placed,
        ):
            await self._place(_GrafanaApi(server), placed, files)
            yield

    async def _place(
        self, api: "_GrafanaApi", placed: contextlib.AsyncExitStack, files: Mapping[Path, str]
    ) -> None:
        """Add data sources, a folder and dashboards; `placed` removes them."""
        source_names: dict[str, str] = {}  # by type
        (provisioned,) = (text for file, text in files.items() if file.parent.name == "datasources")
        document = yamlfile.parse(provisioned, "data sources")
        for source in document.plain()["datasources"]:
            uid, name = self.prefix + source["uid"], f"{source['name']} {self.prefix[:-1]}"
            await api.post("datasources", source | {"uid": uid, "name": name})
            placed.push_async_callback(api.delete, f"datasources/uid/{uid}")
            source_names[source["type"]] = name
        title = f"cephqos {self.prefix[:-1]}"
        await api.post("folders", {"uid": self.prefix[:-1], "title": title})
        placed.push_async_callback(api.delete, f"folders/{self.prefix[:-1]}")
        for text in [text for file, text in sorted(files.items()) if file.suffix == ".json"]:
            board = own_copy(text, self.prefix, source_names)
            await api.post("dashboards/db", {"dashboard": board, "folderUid": self.prefix[:-1]})


def own_copy(text: str, prefix: str, sources: Mapping[str, str]) -> dict[str, Any]:
    """A dashboard with the prefix before its uid, which links only to others with that prefix.

    It asks only these data sources, given as names by type.
    """
    board: dict[str, Any] = json.loads(text.replace('"/d/', f'"/d/{prefix}'))
    board |= {"id": None, "uid": prefix + board["uid"], "tags": [f"cephqos {prefix[:-1]}"]}
    for link in board["links"]:
        link["tags"] = board["tags"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "datasource":
            variable["regex"] = f"/^{re.escape(sources.get(variable['query'], 'none'))}$/"
    return board


class _GrafanaApi:
    """Grafana's HTTP API."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    async def post(self, path: str, body: Mapping[str, Any]) -> None:
        await self._request("POST", path, body)

    async def delete(self, path: str) -> None:
        await self._request("DELETE", path, None)

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> None:
        try:
            answer = await self._server.ask(method, f"/api/{path}", json=body)
        except NoAnswer as error:
            raise LabError(f"{self._server.shown} does not answer: {error}") from None
        if answer.status < 400:
            return
        hint = ""
        if answer.status in (401, 403):
            hint = "; set GRAFANA_TOKEN to the token of a service account with the role Admin"
        url = f"{self._server.shown}/api/{path}"
        raise LabError(f"{method} {url}: {answer.status} {answer.first_words}{hint}")
