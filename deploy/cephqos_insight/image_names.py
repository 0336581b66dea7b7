"""Names of RBD images. Operations carry only an image's id. `cephqos who` and `blame` want its
name.

The object `rbd_directory` of a pool has an entry `id_<image id>` for each image. Its value is the
name, with the name's length in four bytes before it.
"""

import argparse
import errno
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cephqos_base.tenant_shares import OsdTenants, TenantKey
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)
from cephqos_exporter.qos.tenants import IMAGE
from cephqos_insight.cluster_access import access_of

_DIRECTORY: Final = "rbd_directory"
_ID: Final = "id_"
_LENGTH_BYTES: Final = 4
_ANSWER_SECONDS: Final = 10.0  # for each command

ImageNames = Mapping[tuple[str, TenantKey], str]  # by the cluster's fsid and the tenant


class NamesFailed(Exception):
    """The cluster did not give the names. The message says why."""


async def images_of(
    arguments: argparse.Namespace, shares: Iterable[OsdTenants]
) -> tuple[ImageNames, str]:
    """What the images among these tenants are called, if `--conf` is given; or why that is not
    known."""
    if not arguments.conf:
        return {}, ""
    wanted = dict.fromkeys((osd.cluster, tenant.key) for osd in shares for tenant in osd.tenants)
    try:
        return await image_names(access_of(arguments), wanted), ""
    except NamesFailed as exc:
        return {}, str(exc)


def unnamed(why: str) -> str:
    """The line for a reader who sees ids instead of names."""
    return f"The cluster does not say the names of images: {why}"


async def image_names(access: ClusterAccess, wanted: Iterable[tuple[str, TenantKey]]) -> ImageNames:
    """What the images of this cluster are called.

    Left out are images of other clusters, removed images, and images in a namespace, which has a
    directory of its own.
    """
    names: dict[tuple[str, TenantKey], str] = {}
    try:
        async with MonClient(access) as client:
            fsid = (await client.command("fsid", within=_ANSWER_SECONDS))["fsid"]
            pools: dict[str, list[TenantKey]] = {}
            for cluster, key in wanted:
                if cluster == fsid and key.kind == IMAGE:
                    pools.setdefault(key.pool_id, []).append(key)
            for pool, keys in pools.items():
                entries = await _directory_entries(client, pool, [_ID + key.tenant for key in keys])
                for key in keys:
                    if value := entries.get(_ID + key.tenant):
                        names[fsid, key] = bytes.fromhex(value)[_LENGTH_BYTES:].decode(
                            errors="replace"
                        )
    except (ClusterUnreachable, CommandFailed, LookupError, TypeError, ValueError) as exc:
        raise NamesFailed(str(exc)) from exc
    return names


async def _directory_entries(client: MonClient, pool: str, keys: list[str]) -> Mapping[str, Any]:
    """Values of a pool's directory of images, in hex, by key. Keys without a value are absent."""
    try:
        reply = await client.command(
            f"omap of {_DIRECTORY}",
            target=f"pool.{pool}",
            object=_DIRECTORY,
            keys=keys,
            within=_ANSWER_SECONDS,
        )
    except CommandFailed as exc:
        if exc.code == errno.ENOENT:  # the pool or its directory was removed
            return {}
        raise
    return dict(reply)
