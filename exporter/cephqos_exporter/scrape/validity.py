"""What may be on a page: names, labels, help texts and values that both formats allow, once each.

Names and texts of a daemon are made valid here. `rendering.py` leaves the rest out.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from cephqos_exporter.families import FamilyType, Sample

SUFFIXES: Final = frozenset({"", "_bucket", "_sum", "_count"})
COUNTED: Final = frozenset({"_bucket", "_count"})  # whole numbers in OpenMetrics
SIGNS: Final = frozenset("-+N")
NEVER_BELOW_0: Final[frozenset[FamilyType]] = frozenset({"counter", "histogram", "summary"})

# Names and labels that were found valid. Most come again at every scrape, as the same objects: a
# look-up takes 40 ns.
_valid_names: set[str] = set()
_valid_labels: set[str] = {""}
# Above this they are dropped: daemons come and go for years, and one may have new labels at each
# scrape. A host with 60 OSDs has 10 MB of them, a cluster of 10,000 pools 40 MB.
VALID_BYTES_AT_MOST: Final = 96 << 20
_BYTES_EACH: Final = 120  # besides its characters
_bytes_kept = 0

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_:]")
# No NUL, which ends the input of some parsers.
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\\n\0]|\\["\\n])*"(?:,|\Z)')
_LONGEST_NAME: Final = 300
_LONGEST_LABELS: Final = 4096
_LONGEST_HELP: Final = 2000


class Seen:
    """The series of one source so far. They are compared only if a name comes again."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._later: list[tuple[Sequence[str], Sequence[Sequence[Sample]]]] = []
        self._keys: set[str] = set()

    def are_new(
        self, series: Iterable[str], names: Sequence[str], samples: Sequence[Sequence[Sample]]
    ) -> bool:
        """Whether no series of these names was there before. Adds them.

        `series`: the names with their suffixes, of families that have `names` and `samples`.
        """
        if not self._names.isdisjoint(series):
            return False
        self._names.update(series)
        self._later.append((names, samples))
        return True

    def take(self, name: str, samples: Sequence[Sample]) -> list[bool]:
        """For each sample, whether its series was not there before."""
        for names, families in self._later:
            for known, earlier in zip(names, families, strict=True):
                self._keys.update(_key(known, *sample) for sample in earlier)
        self._later.clear()
        self._names.update(name + suffix for suffix, _, _ in samples)
        new = []
        for sample in samples:
            key = _key(name, *sample)
            new.append(key not in self._keys)
            self._keys.add(key)
        return new


def _key(name: str, suffix: str, labels: str, _: float) -> str:
    return f"{name}{suffix}{{{labels}}}"


def are_fit(name: str, samples: Sequence[Sample], seen: Seen) -> bool:
    """Whether all of a family's samples are valid and new. Sets answer it fast in most cases."""
    labels = [sample[1] for sample in samples]
    suffixes = {sample[0] for sample in samples}
    if not (_valid_labels.issuperset(labels) and suffixes <= SUFFIXES):
        return False
    for suffix in suffixes:
        of_it = labels if len(suffixes) == 1 else [it[1] for it in samples if it[0] == suffix]
        if len(set(of_it)) != len(of_it):
            return False
    return seen.are_new({name + suffix for suffix in suffixes}, [name], [samples])


def valid_name(name: object) -> str:
    """A metric's name, with invalid characters replaced."""
    if name in _valid_names:
        return str(name)
    if not isinstance(name, str):
        raise TypeError(f"{type(name).__name__} instead of a metric's name")
    name = name[:_LONGEST_NAME]
    fit = name if _NAME.fullmatch(name) else _UNSAFE.sub("_", name)
    if not fit or fit[0].isdecimal():
        fit = f"_{fit}"
    return _remember(fit[:_LONGEST_NAME], _valid_names)


def labels_are_valid(labels: str) -> bool:
    """Whether rendered labels are what both formats allow, each name once."""
    if labels in _valid_labels:
        return True
    if len(labels) > _LONGEST_LABELS or labels[-1] == ",":
        return False
    names: list[str] = []
    at = 0
    while at < len(labels):
        label = _LABEL.match(labels, at)
        if label is None:
            return False
        names.append(label[1])
        at = label.end()
        if label[1].startswith("__"):  # Prometheus' own: __name__ would be another metric
            return False
    if len(set(names)) != len(names) or not _is_text(labels):
        return False
    _remember(labels, _valid_labels)
    return True


def _remember(text: str, known: set[str]) -> str:
    global _bytes_kept
    _bytes_kept += len(text) + _BYTES_EACH
    if _bytes_kept > VALID_BYTES_AT_MOST:
        _valid_names.clear()
        _valid_labels.clear()
        _valid_labels.add("")
        _bytes_kept = len(text) + _BYTES_EACH
    known.add(text)
    return text


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8. File names and JSON may have lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def valid_help(text: object) -> str:
    if not isinstance(text, str):
        return "No description."
    if len(text) > _LONGEST_HELP:
        text = text[:_LONGEST_HELP]
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode(errors="replace").decode()


def are_whole(values: Iterable[float]) -> bool:
    """Whether all are whole numbers: an OSD may report half an operation."""
    return all(isinstance(value, int) or value.is_integer() for value in values)


def is_absurd(number: str, counts: bool) -> bool:
    """Whether a number with a sign or a leading N is not valid: NaN, Inf, a count below 0."""
    if number[0] != "-":
        return True
    return number == "-Inf" or (counts and number not in ("-0", "-0.0"))
