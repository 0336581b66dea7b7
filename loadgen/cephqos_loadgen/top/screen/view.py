"""What the user has chosen: sort, filter, the opened OSD, pause, page.

A `View` never changes: `pressed` gives the view after a key.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from cephqos_base.units import osd_order
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import STATES, OsdState, Picture

Page = Literal["main", "help", "notes", "tenants"]


# -- orders of OSDs: keys for `sorted` -------------------------------------------------------------


def _high_first(value: float | None) -> float:
    """What is not known comes last."""
    return float("inf") if value is None else -value


def _worst(osd: OsdState) -> tuple[object, ...]:
    badness = osd.worst.badness if osd.worst else (len(STATES),)
    return (osd.up, badness, osd_order(osd.name))


def _lag(osd: OsdState) -> tuple[object, ...]:
    longest = max((osd_class.lag or 0.0 for osd_class in osd.classes), default=None)
    return (_high_first(longest), _worst(osd))


def _queued(osd: OsdState) -> tuple[object, ...]:
    queued = [osd_class.queued for osd_class in osd.classes if osd_class.queued is not None]
    return (_high_first(sum(queued) if queued else None), _worst(osd))


def _attainment(osd: OsdState) -> tuple[object, ...]:
    shares = [osd_class.attainment for osd_class in osd.classes if osd_class.state != "idle"]
    known = [attainment for attainment in shares if attainment is not None]
    return (min(known, default=float("inf")), _worst(osd))


# By the name that is shown. All but the last put what needs attention first.
SORTS: Final[Mapping[str, Callable[[OsdState], tuple[object, ...]]]] = {
    "worst": _worst,
    "lag": _lag,
    "queue": _queued,
    "attainment": _attainment,
    "delivered": lambda osd: (_high_first(osd.delivered), osd_order(osd.name)),
    "name": lambda osd: osd_order(osd.name),
}


@dataclass(frozen=True, slots=True)
class View:
    """What is shown, until the next key."""

    sort: str = "worst"  # a key of SORTS
    reverse: bool = False
    filter: str = ""  # words, as `_matches` reads them
    cursor: int = 0  # a position in the list of chosen OSDs
    opened: str | None = None  # the OSD whose page is shown
    paused: bool = False
    page: Page = "main"
    cluster: str | None = None  # None: the first one
    typing: bool = False  # the filter is being typed
    over: bool = False  # the user wants to leave

    @property
    def selection(self) -> Selection:
        """What a source has to be asked for to show this."""
        return Selection(self.cluster, self.opened, self.page == "tenants")

    def next_sort(self) -> "View":
        names = list(SORTS)
        following = names[(names.index(self.sort) + 1) % len(names)]
        return replace(self, sort=following, cursor=0)

    def moved(self, rows: int, picture: Picture | None) -> "View":
        """The cursor moved by that many rows, within the list."""
        count = len(chosen_osds(picture, self)) if picture else 0
        return replace(self, cursor=max(0, min(self.cursor + rows, count - 1)))

    def with_opened(self, picture: Picture | None) -> "View":
        """The OSD under the cursor opened."""
        osds = chosen_osds(picture, self) if picture else []
        if not osds or self.page != "main" or self.opened is not None:
            return self
        return replace(self, opened=osds[min(self.cursor, len(osds) - 1)].name)

    def back(self) -> "View":
        """One step back: a page, then the opened OSD, then the filter."""
        if self.page != "main":
            return replace(self, page="main")
        if self.opened is not None:
            return replace(self, opened=None)
        return replace(self, filter="", cursor=0)

    def typed(self, key: str) -> "View":
        """A key while the filter is open."""
        if key == "enter":
            return replace(self, typing=False)
        if key == "escape":
            return replace(self, typing=False, filter="", cursor=0)
        if key == "backspace":
            return replace(self, filter=self.filter[:-1], cursor=0)
        if len(key) == 1 and key.isprintable():
            return replace(self, filter=self.filter + key, cursor=0)
        return self

    def next_cluster(self, picture: Picture | None) -> "View":
        if picture is None or len(picture.clusters) < 2:
            return self
        known = picture.clusters
        place = known.index(picture.cluster) if picture.cluster in known else -1
        return replace(self, cluster=known[(place + 1) % len(known)], opened=None, cursor=0)

    def on_page(self, page: Page) -> "View":
        """That page, or the main one if it is open already."""
        return replace(self, page="main" if self.page == page else page)


# Rows that a key moves the cursor.
_MOVES: Final[Mapping[str, int]] = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "pageup": -10,
    "pagedown": 10,
    "home": -1_000_000,
    "end": 1_000_000,
}
_PAGE_KEYS: Final[Mapping[str, Page]] = {
    "n": "notes",
    "t": "tenants",
    "h": "help",
    "?": "help",
}


def pressed(view: View, key: str, picture: Picture | None) -> View:
    """The view after a key: a character, or a name such as "up". Unknown keys do nothing."""
    if view.typing and key != "ctrl+c":
        return view.typed(key)
    if key in _MOVES:
        return view.moved(_MOVES[key], picture)
    if key in _PAGE_KEYS:
        return view.on_page(_PAGE_KEYS[key])
    return _after_command(view, key, picture)


def _after_command(view: View, key: str, picture: Picture | None) -> View:
    match key:
        case "q" | "ctrl+c":
            return replace(view, over=True)
        case "s":
            return view.next_sort()
        case "r":
            return replace(view, reverse=not view.reverse, cursor=0)
        case "/":
            return replace(view, typing=True, page="main", opened=None)
        case "enter":
            return view.with_opened(picture)
        case "escape":
            return view.back()
        case "p" | " ":
            return replace(view, paused=not view.paused)
        case "c":
            return view.next_cluster(picture)
    return view


def chosen_osds(picture: Picture, view: View) -> list[OsdState]:
    """The OSDs that the filter lets through, sorted."""
    words = view.filter.lower().split()
    osds = [osd for osd in picture.osds if all(_matches(osd, word) for word in words)]
    return sorted(osds, key=SORTS[view.sort], reverse=view.reverse)


def _matches(osd: OsdState, word: str) -> bool:
    """Whether the OSD's name begins with the word, or its worst class, state or cause has it."""
    if word.startswith("osd."):
        return osd.name == word
    if word.isdecimal():
        return osd.name == f"osd.{word}"
    worst = osd.worst
    texts = [osd.name, osd.scheduler, "" if osd.up else "down"]
    if worst is not None:
        texts += [worst.name, worst.state, worst.cause, worst.by]
    return any(word in text.lower() for text in texts)
