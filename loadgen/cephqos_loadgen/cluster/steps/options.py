"""Ceph's options and flags, given back while they are as the run has set them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from cephqos_base.profiles import CUSTOM, PROFILE_OPTION, SHARE_OPTIONS
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.connection import PATIENCE, ClusterConnection, ClusterView
from cephqos_loadgen.cluster.option_values import read_info, same_value
from cephqos_loadgen.cluster.set_shares import kept_in_force
from cephqos_loadgen.cluster.steps.step import StepBack, boolean, maybe, one_of, part, text, word
from cephqos_loadgen.plan.ceph_options import shapes_load
from cephqos_loadgen.plan.reading import CLUSTER_FLAGS, SECTION

# Without these a monitor refuses to remove what the run makes, or to make a pool of one copy.
MON_NEEDS: Final = ("mon_allow_pool_delete", "mon_allow_pool_size_one")
# Otherwise monitors learn from an OSD that was taken out and came back that it is slow to answer,
# and find its next failure minutes later, for two days.
LAGGY: Final = "mon_osd_laggy_weight"
# OSDs with it do not measure their capacity when they start.
SKIP_BENCHMARK: Final = "osd_mclock_skip_benchmark"
# While one of these flags is set, data does not move. It moves when the flag is cleared.
HOLDING_DATA: Final = frozenset({"norecover", "nobackfill", "norebalance", "noin", "noout"})


def _option_name(value: Any) -> str:
    if isinstance(value, str) and (value in (*MON_NEEDS, LAGGY) or shapes_load(value)):
        return value
    raise ValueError("an option that a run may set")


async def stored_options(
    cluster: ClusterView, patience: float = PATIENCE
) -> Mapping[tuple[str, str], str]:
    """The monitors' database by section and name, without entries that have a mask."""
    dump = await cluster.command("config dump", patience=patience)
    return {(e["section"], e["name"]): e["value"] for e in dump if not e.get("mask")}


@dataclass(frozen=True, slots=True)
class OptionSet(StepBack):
    """An option in the monitors' database."""

    kind: ClassVar[str] = "option"

    who: str = part(word(SECTION, "global, mon, mgr, osd or a daemon such as osd.0"))
    name: str = part(_option_name)
    before: str | None = part(maybe(text))  # None: it was not set
    ours: str = part(text)  # what the run has set

    @property
    def after_restarts(self) -> bool:
        return self.name == SKIP_BENCHMARK

    @property
    def shown(self) -> str:
        if self.before is None:
            return shlex.join(["ceph", "config", "rm", self.who, self.name])
        return shlex.join(["ceph", "config", "set", self.who, self.name, self.before])

    async def carry_out(self, cluster: ClusterConnection) -> str:
        stored = await stored_options(cluster)
        now = stored.get((self.who, self.name))
        if now == self.before:
            return ""
        if now is None:
            return f"{self.who} {self.name} was removed by someone else"
        if now != self.ours:
            kind = await self._type(cluster)
            if self.before is not None and same_value(kind, self.before, now):
                return ""
            if not same_value(kind, self.ours, now):
                return (
                    f"{self.who} {self.name} was set to {now} by someone else; the run had set it"
                    f" to {self.ours}"
                )
        if self.before is None:
            await cluster.command("config rm", who=self.who, name=self.name)
            if self.name in SHARE_OPTIONS and not self._is_custom(stored):
                return await kept_in_force(cluster, self.who)
        else:
            await cluster.command("config set", who=self.who, name=self.name, value=self.before)
        return ""

    def _is_custom(self, stored: Mapping[tuple[str, str], str]) -> bool:
        """Whether the profile of these OSDs is the custom one, as far as monitors have it."""
        sections = (self.who, "osd", "global")
        profiles = (stored.get((section, PROFILE_OPTION)) for section in sections)
        return next(filter(None, profiles), "") == CUSTOM

    async def _type(self, cluster: ClusterConnection) -> str:
        try:
            return read_info(await cluster.command("config help", key=self.name)).type
        except (CommandFailed, KeyError, TypeError):
            return "str"  # of a module that is off: its values are compared as they are written


@dataclass(frozen=True, slots=True)
class FlagChanged(StepBack):
    """A flag of the cluster."""

    kind: ClassVar[str] = "flag"

    name: str = part(one_of(*CLUSTER_FLAGS))
    on: bool = part(boolean)  # whether the run has set it; else it has cleared it

    @property
    def shown(self) -> str:
        return f"ceph osd {'unset' if self.on else 'set'} {self.name}"

    @property
    def moves_data(self) -> bool:
        return self.name in HOLDING_DATA

    async def carry_out(self, cluster: ClusterConnection) -> str:
        flags = (await cluster.command("osd dump"))["flags"].split(",")
        if (self.name in flags) == self.on:
            await cluster.command("osd unset" if self.on else "osd set", key=self.name)
        return ""
