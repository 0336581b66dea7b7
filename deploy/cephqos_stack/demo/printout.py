"""The demo without a terminal: a line for each event, and the whole picture when an alert begins or
ends. Between them, the sentence on all reservations is an event when it has changed.
"""

import asyncio
from collections.abc import Callable

from cephqos_base.terminal import say
from cephqos_loadgen.top.picture import Picture
from cephqos_loadgen.top.screen.layout import Line, plain
from cephqos_loadgen.top.screen.page import whole
from cephqos_loadgen.top.screen.sections import headline
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

COLUMNS = 100

Finding = tuple[str, tuple[str, ...], str]  # an alert's name, its OSDs, and the class


def findings(picture: Picture) -> frozenset[Finding]:
    """The alerts that fire."""
    return frozenset((alert.name, alert.osds, alert.what) for alert in picture.alerts)


class Printout:
    """Prints what changed."""

    def __init__(
        self, watch: Watch, tell: Callable[[str], None], above: Callable[[], list[Line]]
    ) -> None:
        """`tell`: prints an event. `above`: the lines above the picture."""
        self._watch = watch
        self._tell = tell
        self._above = above
        self._turn = asyncio.Lock()
        self._seen = self._told = ""  # sentences on all reservations
        self._findings: frozenset[Finding] = frozenset()
        self._printed = 0.0  # the time of the last picture that was printed

    async def refresh(self, *, picture: bool = False) -> None:
        """Look at the cluster once, and print what changed.

        `picture`: print it even if nothing changed, unless the last one is as new.
        """
        async with self._turn:
            await self._watch.refresh()
            now = self._watch.picture
            if now is None:
                return
            self._tell_sentence(plain(headline(now)))
            wanted = picture and now.time >= self._printed + self._watch.interval
            if wanted or findings(now) != self._findings:
                self._findings, self._printed = findings(now), now.time
                page = whole(now, self._watch.status(), View(), COLUMNS)
                say(*map(plain, [*self._above(), *page]))

    def _tell_sentence(self, sentence: str) -> None:
        """Only if it was also seen before: what is true for a moment is no event."""
        if sentence == self._seen and sentence != self._told:
            self._told = sentence
            self._tell(sentence)
        self._seen = sentence
