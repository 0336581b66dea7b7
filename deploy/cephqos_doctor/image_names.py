"""Names of RBD images. Operations have their ids only; the pool's `rbd_directory` has both."""

import errno
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_base.tenant_shares import TenantKey
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)
from cephqos_exporter.qos.tenants import IMAGE

_DIRECTORY: Final = "rbd_directory"
_ID: Final = "id_"
_LENGTH: Final = 4  # bytes before a text, which say how long it is
_WITHIN: Final = 10.0

# By the cluster's fsid and the tenant.
ImageNames = Mapping[tuple[str, TenantKey], str]


class NamesFailed(Exception):
    """Why the cluster does not say them."""


async def image_names(access: ClusterAccess, wanted: Iterable[tuple[str, TenantKey]]) -> ImageNames:
    """What the images of this cluster are called. An image that was removed is left out, and so is
    one in a namespace: its id is in another directory."""
    names: dict[tuple[str, TenantKey], str] = {}
    try:
        async with MonClient(access) as client:
            fsid = (await client.command("fsid", within=_WITHIN))["fsid"]
            pools: dict[str, list[TenantKey]] = {}
            for cluster, key in wanted:
                if cluster == fsid and key.kind == IMAGE:
                    pools.setdefault(key.pool_id, []).append(key)
            for pool, keys in pools.items():
                values = await _values(client, pool, [_ID + key.tenant for key in keys])
                for key in keys:
                    if text := values.get(_ID + key.tenant):
                        names[fsid, key] = bytes.fromhex(text)[_LENGTH:].decode(errors="replace")
    except (ClusterUnreachable, CommandFailed, LookupError, TypeError, ValueError) as exc:
        raise NamesFailed(str(exc)) from exc
    return names


async def _values(client: MonClient, pool: str, keys: list[str]) -> Mapping[str, Any]:
    try:
        reply = await client.command(
            f"omap of {_DIRECTORY}",
            target=f"pool.{pool}",
            object=_DIRECTORY,
            keys=keys,
            within=_WITHIN,
        )
    except CommandFailed as exc:
        if exc.code == errno.ENOENT:  # the pool or its directory was removed
            return {}
        raise
    return dict(reply)
