"""Where samples come from: Prometheus, or exporters directly. The only part that asks servers."""

from typing import Protocol

from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import TopSamples


class Source(Protocol):
    """Where samples come from."""

    @property
    def name(self) -> str:
        """For the screen, without a password: "Prometheus http://localhost:9090"."""

    async def fetch(self, selection: Selection) -> TopSamples:
        """The samples of now; raises NoAnswer."""
