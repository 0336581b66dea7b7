"""Why a class gets less than its reservation: the values of the label `cause`.

Each cause is a file of cephqos_alerts/sources/causes/, with its evidence: see the first lines of
device.yml. Dashboards show names and colours of causes and may not import the rules, so the files
are read here, as data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Final

from cephqos_base import yamlfile
from cephqos_base.yamlfile import Value

_KEYS: Final = (
    *("cause", "words", "colour", "rank", "other_ranks", "by", "ends_tonight", "own_load"),
    *("means", "seen", "blind", "expressions", "expr"),
)
_NEEDED: Final = ("cause", "words", "colour", "rank", "means", "seen", "expr")


@dataclass(frozen=True, kw_only=True)
class OtherRank:
    """The rank of a cause where its evidence is stronger or weaker."""

    name: str
    rank: int
    when: str  # to follow the rank: "where it lacks CPU"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A cause. Where there is evidence for several, the one of the highest rank is shown first."""

    name: str  # value of the label `cause`
    words: str  # for people, on maps and in tables
    colour: str
    rank: int
    other_ranks: tuple[OtherRank, ...]
    by: bool  # whether the label `by` names what is to blame
    ends_tonight: bool  # an operator can end it at night: then it is critical for clients
    own_load: bool  # the OSD only does all it can for its own clients
    means: str
    seen: str  # the condition, to follow "Seen where: "
    blind: str
    source: Value  # of the file: alerts read the evidence from it

    def __str__(self) -> str:
        return self.name


def read_cause(document: Value) -> Cause:
    top = document.table(_KEYS, _NEEDED)

    def text(key: str, pattern: str = "", allowed: str = "text") -> str:
        return " ".join(top[key].text(pattern, allowed).split()) if key in top else ""

    def flag(key: str) -> bool:
        return top[key].boolean() if key in top else False

    others = top["other_ranks"].entries() if "other_ranks" in top else {}
    return Cause(
        name=text("cause", "[a-z_]+", "a name of a-z and _"),
        words=text("words"),
        colour=text("colour", "#[0-9A-F]{6}", "a colour such as #DB2B4E"),
        rank=top["rank"].integer(1, 99),
        other_ranks=tuple(_other_rank(name, value) for name, value in others.items()),
        by=flag("by"),
        ends_tonight=flag("ends_tonight"),
        own_load=flag("own_load"),
        means=text("means"),
        seen=text("seen"),
        blind=text("blind"),
        source=document,
    )


def _other_rank(name: str, value: Value) -> OtherRank:
    table = value.table(("rank", "when"), ("rank", "when"))
    return OtherRank(name=name, rank=table["rank"].integer(1, 99), when=table["when"].string())


def _all() -> tuple[Cause, ...]:
    with as_file(files("cephqos_alerts") / "sources" / "causes") as folder:
        found = [read_cause(yamlfile.read(file)) for file in folder.glob("*.yml")]
    return tuple(sorted(found, key=lambda cause: -cause.rank))


# Most urgent first.
CAUSES: Final = _all()
CAUSE: Final[Mapping[str, Cause]] = {cause.name: cause for cause in CAUSES}
