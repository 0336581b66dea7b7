"""A cluster in memory that a run changes: options, flags, pools, OSDs and the monitors' keys."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from cephqos_exporter.ceph.monclient import CommandFailed

_TYPES = {"osd_max_backfills": "uint", "mon_allow_pool_delete": "bool"}


class ChangedCluster:
    """It knows the commands that a run sends to change a cluster and to look at it."""

    fsid = "11111111-2222-3333-4444-555555555555"

    release = "18.2.7"  # of all OSDs
    crush_version = 3

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.options: dict[tuple[str, str], str] = {}
        self.flags = {"sortbitwise"}
        self.pools: dict[int, dict[str, Any]] = {}
        self.osd_map: dict[int, dict[str, Any]] = {
            osd: {"up": 1, "in": 1, "weight": 1.0, "state": ["exists"]} for osd in (0, 1)
        }
        self.upmaps: dict[str, list[int]] = {}
        self.asked: list[str] = []  # what changes something, but the keys
        self.fails: dict[str, Exception] = {}  # by prefix
        self.access: Any = SimpleNamespace(argv=list, lab_name=None, at_once=True)

    async def command(self, prefix: str, *, target: str = "mon", **given: Any) -> Any:
        given.pop("patience", None)
        await asyncio.sleep(0)
        if prefix in self.fails:
            raise self.fails[prefix]
        method = getattr(self, "_" + prefix.replace(" ", "_").replace("-", "_"))
        return method(**given)

    def _changed(self, *words: object) -> None:
        self.asked.append(" ".join(map(str, words)))

    # -- the monitors' keys ---------------------------------------------------------------------

    def _config_key_get(self, key: str) -> str:
        if key not in self.keys:
            raise CommandFailed("config-key get", -2, "no such key")
        return self.keys[key]

    def _config_key_dump(self, key: str) -> dict[str, str]:
        return {name: value for name, value in self.keys.items() if name.startswith(key)}

    def _config_key_set(self, key: str, val: str) -> None:
        if len(val) > 65536:
            raise CommandFailed("config-key set", -27, "value is larger than 64 KiB")
        self.keys[key] = val

    def _config_key_rm(self, key: str) -> None:
        self.keys.pop(key, None)

    # -- options and flags ----------------------------------------------------------------------

    def _config_dump(self) -> list[dict[str, str]]:
        return [
            {"section": who, "name": name, "value": value, "mask": ""}
            for (who, name), value in self.options.items()
        ]

    def _config_help(self, key: str) -> dict[str, Any]:
        return {"name": key, "type": _TYPES.get(key, "str"), "can_update_at_runtime": True}

    def _config_set(self, who: str, name: str, value: str) -> None:
        self._changed("config set", who, name, value)
        self.options[who, name] = value

    def _config_rm(self, who: str, name: str) -> None:
        self._changed("config rm", who, name)
        self.options.pop((who, name), None)

    def _config_get(self, who: str, key: str) -> str:
        return self.options.get((who, key), "65536")

    def _balancer_on(self) -> None:
        self._changed("balancer on")
        self.options["mgr", "mgr/balancer/active"] = "true"

    def _osd_set(self, key: str) -> None:
        self._changed("osd set", key)
        self.flags.add(key)

    def _osd_unset(self, key: str) -> None:
        self._changed("osd unset", key)
        self.flags.discard(key)

    # -- OSDs -----------------------------------------------------------------------------------

    def _osd_dump(self) -> dict[str, Any]:
        return {
            "flags": ",".join(sorted(self.flags)),
            "crush_version": self.crush_version,
            "osds": [{"osd": osd, **entry} for osd, entry in self.osd_map.items()],
            "pools": [{"pool": number, **pool} for number, pool in self.pools.items()],
            "pg_upmap_items": [
                {
                    "pgid": pg,
                    "mappings": [
                        {"from": a, "to": b} for a, b in zip(o[::2], o[1::2], strict=True)
                    ],
                }
                for pg, o in self.upmaps.items()
            ],
        }

    def _osd_metadata(self) -> list[dict[str, Any]]:
        return [{"id": osd, "ceph_version_short": self.release} for osd in self.osd_map]

    def _osd_set_group(self, flags: str, who: Sequence[str]) -> None:
        self._changed("osd set-group", flags, *who)
        for name in who:
            self.osd_map[int(name[4:])]["state"].append(flags)

    def _osd_unset_group(self, flags: str, who: Sequence[str]) -> None:
        self._changed("osd unset-group", flags, *who)
        for name in who:
            self.osd_map[int(name[4:])]["state"].remove(flags)

    def _osd_in(self, ids: Sequence[str]) -> None:
        self._changed("osd in", *ids)
        for osd in ids:
            self.osd_map[int(osd)] |= {"in": 1, "weight": 1.0}

    def _osd_reweight(self, id: int, weight: float) -> None:
        self._changed("osd reweight", id, weight)
        self.osd_map[id]["weight"] = int(weight * 65536) / 65536

    async def osds(self) -> list[int]:
        return list(self.osd_map)

    async def wait_for_osd(self, osd: int, *, up: bool) -> None: ...

    # -- pools ----------------------------------------------------------------------------------

    def add_pool(self, number: int, name: str, run: str | None = None, mode: str = "on") -> None:
        metadata = {} if run is None else {"cephqos": {"run": run}}
        self.pools[number] = {
            "pool_name": name,
            "application_metadata": metadata,
            "pg_autoscale_mode": mode,
        }

    def _named(self, name: str) -> dict[str, Any]:
        for pool in self.pools.values():
            if pool["pool_name"] == name:
                return pool
        raise CommandFailed("osd pool", -2, f"pool {name} does not exist")

    def _osd_pool_create(self, pool: str, **_: Any) -> None:
        self._changed("osd pool create", pool)
        self.add_pool(max(self.pools, default=0) + 1, pool)

    def _osd_pool_application_enable(self, pool: str, app: str, **_: Any) -> None:
        self._named(pool)["application_metadata"].setdefault(app, {})

    def _osd_pool_application_set(self, pool: str, app: str, key: str, value: str) -> None:
        self._named(pool)["application_metadata"][app][key] = value

    def _osd_pool_set(self, pool: str, var: str, val: str, **_: Any) -> None:
        self._changed("osd pool set", pool, var, val)
        self._named(pool)[var] = val

    def _osd_pool_rename(self, srcpool: str, destpool: str) -> None:
        if any(pool["pool_name"] == destpool for pool in self.pools.values()):
            raise CommandFailed("osd pool rename", -17, f"pool {destpool} exists")
        self._named(srcpool)["pool_name"] = destpool

    def _osd_pool_rm(self, pool: str, pool2: str, **_: Any) -> None:
        self._changed("osd pool rm", pool)
        found = self._named(pool)
        self.pools = {number: entry for number, entry in self.pools.items() if entry is not found}

    def _osd_pg_upmap_items(self, pgid: str, id: Sequence[int]) -> None:
        self._changed("osd pg-upmap-items", pgid, *id)
        self.upmaps[pgid] = list(id)
