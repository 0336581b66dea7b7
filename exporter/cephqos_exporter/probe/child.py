"""The child that does the probe's operations: one at a time, each on request, killable."""

from dataclasses import dataclass
from typing import Final

import orjson

from cephqos_exporter.ceph.monclient import ClusterAccess, MonClient

# Objects have fixed names: what a child that was killed leaves behind, the next one overwrites. At
# the end of its input it removes them, within five seconds or not at all.
SOURCE: Final = r"""
pools, written, data = {}, set(), os.urandom(where["size"])


def end():
    requests.put(None)
    time.sleep(5)
    os._exit(1)


def opened(pool):
    if pool not in pools:
        pools[pool] = cluster.open_ioctx(pool)
        pools[pool].set_namespace(where["namespace"])
    return pools[pool]


def do(pool, op, name):
    if op == "fsid":
        return {"fsid": cluster.get_fsid()}
    begin = time.monotonic()
    try:
        objects = opened(pool)
        begin = time.monotonic()
        if op == "write":
            written.add((pool, name))
            objects.write_full(name, data)
        else:
            objects.read(name, where["size"])
        return {"seconds": time.monotonic() - begin}
    except Exception as error:
        return {"error": type(error).__name__, "seconds": time.monotonic() - begin}


for request in iter(requests.get, None):
    answer(json.dumps(do(*request)).encode())
for pool, name in written:
    try:
        pools[pool].remove_object(name)
    except Exception:
        pass
os._exit(0)
"""
# More than the five seconds above.
_CLOSE_SECONDS: Final = 6.0


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How an operation went; `error` is the name of what it failed with."""

    seconds: float
    error: str | None


class ProbeChild:
    """A child that is started when it is first asked. ClusterUnreachable where it cannot answer."""

    def __init__(self, access: ClusterAccess, *, namespace: str, size: int) -> None:
        settings = {"namespace": namespace, "size": size}
        self._client = MonClient(access, source=SOURCE, settings=settings)

    async def fsid(self, within: float) -> str:
        """Of the cluster that it is connected to."""
        _, out = await self._client.ask("fsid", ["", "fsid", ""], within)
        return str(orjson.loads(out)["fsid"])

    async def ask(self, pool: str, op: str, name: str, within: float) -> ProbeResult:
        _, out = await self._client.ask(f"{op} of {pool}/{name}", [pool, op, name], within)
        result = orjson.loads(out)
        return ProbeResult(result["seconds"], result.get("error"))

    async def close(self) -> None:
        """Let it remove its objects, then make sure that it is gone, if it can be killed."""
        await self._client.close(within=_CLOSE_SECONDS)
