"""What OSDs and monitors of each release answer: a recording, and how the release differs from it.

A release is a folder here with `release.yaml` and ORIGIN.md; README.md has its keys.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Self

import yaml
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon

HERE: Final = Path(__file__).parent
# An OSD is first seen idle, then under load until all that is asked for late was asked; a cluster
# at rest, scrubbing, recovering.
OSD_MOMENTS: Final = ("idle", *("load",) * 4)
CLUSTER_MOMENTS: Final = ("idle", "scrub", "recovery")
# Recorded at rest only.
_AT_REST: Final = ("primary*", "osd_tree*", "osd_use*")

Replies = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One change of one reply. A change that meets nothing is an error: it is out of date.

    `at`: the way to the objects it is for, `*` in a name for any; `text`: in the reply as JSON.
    """

    reply: str
    at: Sequence[str] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    remove: Sequence[str] = ()
    text: Mapping[str, str] = field(default_factory=dict)
    gone: bool = False  # the command is not known
    whole: Any = None  # the reply, where the recording has none

    def apply(self, replies: Replies) -> None:
        if self.whole is not None:
            if self.reply in replies:
                raise ValueError(f"{self.reply}: recorded, and given as a whole")
            replies[self.reply] = self.whole
            return
        if self.gone:
            del replies[self.reply]
            return
        if self.text:
            replies[self.reply] = json.loads(self._replaced(json.dumps(replies[self.reply])))
        found = list(_places(replies[self.reply], self.at))
        if not found:
            raise ValueError(f"{self.reply}: nothing at {'/'.join(self.at)}")
        for place in found:
            self._change(place)

    def _replaced(self, text: str) -> str:
        for old, new in self.text.items():
            if old not in text:
                raise ValueError(f"{self.reply}: no {old!r} in it")
            text = text.replace(old, new)
        return text

    def _change(self, place: Any) -> None:
        for pattern in self.remove:
            keys = [key for key in place if fnmatchcase(key, pattern)]
            if not keys:
                raise ValueError(f"{self.reply}: no {pattern} at {'/'.join(self.at)}")
            for key in keys:
                del place[key]
        if self.set:
            place.update(json.loads(json.dumps(self.set)))


def _places(reply: Any, way: Sequence[str]) -> Iterator[Any]:
    if not way:
        yield reply
    elif isinstance(reply, list):
        for part in reply:
            yield from _places(part, way[1:])
    elif isinstance(reply, dict):
        for key, part in reply.items():
            if fnmatchcase(key, way[0]):
                yield from _places(part, way[1:])


@dataclass(frozen=True, slots=True)
class Absence:
    """Fields that a release does not have, and why."""

    why: str
    fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class Release:
    """One release, as its file says."""

    name: str
    made: str  # recorded, or sources: nobody ran one
    osd: str  # folder of tests/recordings; `.`: the release's own, as `doctor collect` writes it
    moments: Sequence[str] = OSD_MOMENTS
    cluster: str = ""  # folder of tests/recordings/cluster
    differences: Sequence[Difference] = ()
    cluster_differences: Sequence[Difference] = ()
    unknown_commands: Sequence[str] = ()
    absent: Sequence[Absence] = ()
    folder: Path = HERE

    @classmethod
    def load(cls, folder: Path) -> Self:
        written = yaml.safe_load((folder / "release.yaml").read_text(encoding="utf-8"))
        for key in ("differences", "cluster_differences"):
            written[key] = [Difference(**one) for one in written.get(key, ())]
        written["absent"] = [Absence(**one) for one in written.get("absent", ())]
        return cls(**{"name": folder.name, "folder": folder, **written})

    def osd_replies(self, moment: str) -> Replies:
        recorded = self.folder if self.osd == "." else RECORDINGS / self.osd
        bodies = RecordedDaemon.load(recorded / moment).replies
        replies = {name: json.loads(body) for name, body in bodies.items()}
        for difference in self.differences:
            difference.apply(replies)
        return replies

    def cluster_replies(self, moment: str) -> Replies:
        """By the names of the files: status, osd_dump, pools, brief, scrubbing, primary_N."""
        if self.cluster == ".":  # one moment stands for all
            bodies = RecordedDaemon.load(self.folder / "cluster").replies
            return {name: json.loads(body) for name, body in bodies.items()}
        folder = RECORDINGS / "cluster" / self.cluster
        at_rest = [file for name in _AT_REST for file in (folder / "idle").glob(name)]
        files = [*sorted((folder / moment).glob("*.json")), *at_rest]
        replies = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
        for difference in self.cluster_differences:
            difference.apply(replies)
        return replies


def releases() -> Sequence[Release]:
    """All of them, the oldest first."""
    return [Release.load(file.parent) for file in sorted(HERE.glob("*/release.yaml"))]
