"""What every kind of step is: data, checked when it is read, and carried out."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Final, Self

from cephqos_base.terminal import printable
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.plan.errors import RunError

# Of a step as JSON. Monitors keep 64 KiB under a key; operators can set less.
MAX_STEP_BYTES: Final = 32 << 10

# Checks a value from JSON and returns it as the field has it; ValueError says what was expected.
Reader = Callable[[Any], Any]


class ElsewhereOnly(RunError):
    """The step is of another host, and can be done there only."""


@dataclass(frozen=True, slots=True)
class StepBack(ABC):
    """One step back."""

    kind: ClassVar[str]
    # Whether it can be done on the host of the run only.
    of_this_host: ClassVar[bool] = False
    # Whether it restarts OSDs.
    restarts: ClassVar[bool] = False

    @property
    def after_restarts(self) -> bool:
        """Whether OSDs need what it undoes, until all that are still to be restarted were."""
        return False

    @property
    @abstractmethod
    def shown(self) -> str:
        """The command for a person."""

    @property
    def moves_data(self) -> bool:
        """Whether data may move when it is carried out."""
        return False

    @abstractmethod
    async def carry_out(self, cluster: ClusterConnection) -> str:
        """Undo the change as far as it is still ours. Returns what was left as it is, and why;
        empty if it is undone, or was never made. Can be carried out twice."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """From `to_json`, without the kind; ValueError says what is wrong with it."""
        readers: dict[str, Reader] = {part.name: part.metadata["reader"] for part in fields(cls)}
        if data.keys() != readers.keys():
            found = ", ".join(sorted(map(str, data))) or "none"
            raise ValueError(f"expected the fields {', '.join(readers)}, found {found}")
        values = {}
        for name, reader in readers.items():
            try:
                values[name] = reader(data[name])
            except ValueError as error:
                raise ValueError(f"{name}: expected {error}, found {brief(data[name])}") from None
        return cls(**values)


def brief(value: Any) -> str:
    """A value that may be anything, in a few words."""
    text = printable(json.dumps(value, default=repr))
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- readers of fields ---------------------------------------------------------------------------


def part(reader: Reader) -> Any:
    """A field that is read from JSON by this."""
    return field(metadata={"reader": reader})


def word(pattern: str, expected: str) -> Reader:
    def read(value: Any) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        raise ValueError(expected)

    return read


def one_of(*allowed: str) -> Reader:
    return word("|".join(map(re.escape, allowed)), f"one of {', '.join(allowed)}")


# A value of an option, as an operator may have set it.
text: Final = word(r"[^\x00-\x08\x0b-\x1f\x7f]{0,4096}", "a text of at most 4096 characters")


def integer(least: int, most: int) -> Reader:
    def read(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise ValueError(f"a whole number from {least} to {most}")

    return read


def number(least: float, most: float) -> Reader:
    def read(value: Any) -> float:
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and least <= value <= most
        ):
            return float(value)
        raise ValueError(f"a number from {least:g} to {most:g}")

    return read


def boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def maybe(reader: Reader) -> Reader:
    return lambda value: None if value is None else reader(value)


def several(reader: Reader, most: int) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple) and len(value) <= most:
            return tuple(map(reader, value))
        raise ValueError(f"a list of at most {most}")

    return read


def table(key: Reader, entry: Reader, most: int) -> Reader:
    def read(value: Any) -> dict[Any, Any]:
        if isinstance(value, dict) and len(value) <= most:
            return {key(name): entry(content) for name, content in value.items()}
        raise ValueError(f"a table of at most {most}")

    return read


osd_id: Final = integer(0, 1_000_000)
pool_id: Final = integer(0, 1 << 40)
run_id: Final = word(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}", "the name of a run")
