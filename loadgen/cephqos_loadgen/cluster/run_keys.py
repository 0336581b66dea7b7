"""What a run keeps in the monitors: who it is, that it lives, and its steps back.

cephqos/run              who holds the cluster
cephqos/run/heartbeat    when that run last wrote here
cephqos/run/steps/00001  one step back each, so that no value grows with the run
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from cephqos_base.terminal import printable
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.registry import StepRefused, read_step
from cephqos_loadgen.cluster.steps.step import (
    MAX_STEP_BYTES,
    StepBack,
    brief,
    integer,
    run_id,
    word,
)
from cephqos_loadgen.cluster.this_host import ThisProcess
from cephqos_loadgen.plan.errors import ClusterBusy, ClusterUnfit

KEY: Final = "cephqos/run"
HEARTBEAT: Final = f"{KEY}/heartbeat"
STEPS: Final = f"{KEY}/steps/"
_FORMAT: Final = 2  # of the key
_SIZE_OPTION: Final = "mon_config_key_max_entry_size"
_ENOENT: Final = -2
REMOVE: Final = f"ceph config-key rm {KEY}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A run that holds a cluster."""

    run: str
    token: str  # another one for each try to hold the cluster
    host: str
    process: ThisProcess
    began: float  # seconds since 1970

    def to_text(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)})

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Holder":
        """ValueError for anything that no run writes."""
        if data.keys() != {"format", "run", "token", "host", "process", "began"}:
            raise ValueError(f"found the fields {', '.join(sorted(map(str, data)))}")
        process, began = data["process"], data["began"]
        if not isinstance(process, dict) or process.keys() != _PROCESS.keys():
            raise ValueError(f"process: found {brief(process)}")
        if not isinstance(began, int | float):
            raise ValueError(f"began: found {brief(began)}")
        return cls(
            run=run_id(data["run"]),
            token=_TOKEN(data["token"]),
            host=_HOST(data["host"]),
            process=ThisProcess(**{name: read(process[name]) for name, read in _PROCESS.items()}),
            began=float(began),
        )


_TOKEN = word(r"[0-9a-f]{16}", "16 hexadecimal digits")
_HOST = word(r"[A-Za-z0-9_.-]{1,255}", "the name of a host")
_PROCESS = {
    "boot": word(r"[0-9a-f-]{36}", "the id of a boot"),
    "pid_namespace": word(r"pid:\[[0-9]{1,20}\]", "a namespace"),
    "pid": integer(1, 1 << 32),
    "started": integer(0, 1 << 62),
}


@dataclass(frozen=True, slots=True)
class KeysFound:
    """All that the monitors have below the key."""

    holder: Holder | None = None
    beat: float = 0.0  # when the holder last wrote, seconds since 1970
    steps: Mapping[int, StepBack] = field(default_factory=dict)
    refused: tuple[str, ...] = ()  # steps that no run writes, and why

    @property
    def left_changes(self) -> bool:
        return bool(self.steps or self.refused)

    def shown(self) -> list[str]:
        """The steps in the order to carry them out, and those that are refused."""
        commands = [self.steps[number].shown for number in sorted(self.steps, reverse=True)]
        return [*commands, *(f"refused: {reason}" for reason in self.refused)]


async def look(cluster: ClusterConnection, patience: float = 30.0) -> KeysFound:
    """Read all keys. ClusterBusy if one of them holds what no run writes there."""
    try:
        keys = await cluster.command("config-key dump", key=KEY, patience=patience)
    except CommandFailed as error:
        if error.code != _ENOENT:
            raise
        keys = {}
    if not isinstance(keys, dict):
        raise _strange(KEY, f"the monitors answered {brief(keys)}")
    holder = _holder(keys[KEY]) if KEY in keys else None
    beat = _beat(keys.get(HEARTBEAT), holder) if holder else 0.0
    steps: dict[int, StepBack] = {}
    refused = []
    for key in sorted(key for key in keys if key.startswith(STEPS)):
        number = key.removeprefix(STEPS)
        try:
            if not re.fullmatch("[0-9]{5,6}", number):
                raise StepRefused(f"{key}: expected a number at its end")
            steps[int(number)] = read_step(key, keys[key])
        except StepRefused as error:
            refused.append(printable(str(error)))
    return KeysFound(holder, beat, steps, tuple(refused))


async def read_holder(cluster: ClusterConnection, patience: float) -> Holder | None:
    """Who holds the cluster now."""
    try:
        return _holder(await cluster.command("config-key get", key=KEY, patience=patience))
    except CommandFailed as error:
        if error.code == _ENOENT:
            return None
        raise


async def check_size(cluster: ClusterConnection) -> None:
    """ClusterUnfit if the monitors keep smaller values than a step can be."""
    value = await cluster.command("config get", who="mon", key=_SIZE_OPTION)
    try:
        size = int(str(value).strip())
    except ValueError:
        return  # a release without such a limit
    if size < MAX_STEP_BYTES:
        raise ClusterUnfit(
            f"{_SIZE_OPTION} is {size}, and a step that undoes a change can take {MAX_STEP_BYTES}"
            f" bytes: expected at least that (ceph config set mon {_SIZE_OPTION} 65536)"
        )


def step_key(number: int) -> str:
    return f"{STEPS}{number:05d}"


def _table(value: Any) -> dict[str, Any] | None:
    try:
        data = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _holder(value: Any) -> Holder:
    data = _table(value)
    if data is None:
        raise _strange(KEY, f"found {brief(value)}")
    try:
        if data.get("format") != _FORMAT:
            raise ValueError(f"format: expected {_FORMAT}, found {brief(data.get('format'))}")
        return Holder.read(data)
    except ValueError as error:
        raise _strange(KEY, str(error)) from None


def _beat(value: Any, holder: Holder) -> float:
    """When the holder last wrote; it has not written yet if the heartbeat is another run's."""
    data = _table(value) or {}
    at = data.get("time")
    if data.get("token") != holder.token or not isinstance(at, int | float):
        return holder.began
    return float(at)


def _strange(key: str, found: str) -> ClusterBusy:
    return ClusterBusy(
        f"the monitors' key {key} is not what a run writes there ({printable(found)}). If no run is"
        f" under way, remove it ({REMOVE}); then cephqos run --restore-only undoes what is kept"
        " beside it"
    )
