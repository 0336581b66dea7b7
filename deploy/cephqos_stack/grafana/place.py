"""What `own` and `other` have in common: a Grafana that shows our dashboards."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from cephqos_base import dashboards
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.progress import Say

# A demo's story takes three minutes. In the hour that dashboards show it would be a narrow strip.
_RECENT: Final = "now-15m"


class Grafana(ABC):
    """Its address is known from the start. It answers, and has our dashboards, while `showing`."""

    def __init__(self, url: str, *, prefix: str = "") -> None:
        self.url = url
        self.prefix: Final = prefix  # of the dashboards' uids
        self.headers: Mapping[str, str] = {}  # of every request, such as a token

    @property
    def home_url(self) -> str:
        """The page to open first: the last minutes of the QoS overview."""
        return self.board_url(dashboards.OVERVIEW, {"from": _RECENT, "to": "now"})

    def board_url(self, uid: str, query: Mapping[str, str]) -> str:
        text = f"?{urlencode(query)}" if query else ""
        return f"{self.url}/d/{self.prefix}{uid}{text}"

    @abstractmethod
    def showing(
        self, sources: Sources, folder: Path, say: Say = lambda _: None
    ) -> AbstractAsyncContextManager[None]:
        """Show data sources and dashboards while the block runs. `folder` is for its files."""
