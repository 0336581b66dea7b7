"""Loki with deploy/loki/loki.yaml on object storage: lines outlive everything on its own disk."""

import asyncio
import json
import os
import shutil
import signal
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.waiting import until

from cephqos_base.servers import fetch
from cephqos_loadgen.processes import in_background
from cephqos_loadgen.programs import free_ports, until_answers
from cephqos_stack.logs import LOKI_CONFIG
from cephqos_stack.tools import find_tool

from .object_store import ObjectStore

pytestmark = pytest.mark.full


_LINES = 500


@asynccontextmanager
async def loki(folder: Path, environment: Mapping[str, str]) -> AsyncIterator[str]:
    """A Loki until the block ends. It is told to end, and has the time to flush what it has."""
    program = find_tool("loki")
    if program is None:
        pytest.skip("loki is missing: make tools")
    http, grpc = free_ports(2)
    ports = {"LOKI_PORT": str(http), "LOKI_GRPC_PORT": str(grpc)}
    argv = [str(program), f"-config.file={LOKI_CONFIG}", "-config.expand-env=true"]
    url, output = f"http://127.0.0.1:{http}", folder / "loki.out"
    async with in_background(argv, output, environment={**environment, **ports}) as process:
        await until_answers(f"{url}/ready", process, output, "Loki")
        yield url
        os.kill(process.pid, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 60)


async def push(url: str, lines: list[str]) -> None:
    now = time.time_ns() - 60 * 10**9
    values = [[str(now + number), line] for number, line in enumerate(lines)]
    stream = {"stream": {"log": "osd", "cluster": "c"}, "values": values}
    request = urllib.request.Request(  # noqa: S310 - our own URL
        f"{url}/loki/api/v1/push",
        json.dumps({"streams": [stream]}).encode(),
        {"Content-Type": "application/json"},
    )
    (await asyncio.to_thread(urllib.request.urlopen, request, None, 30)).close()


async def lines_of(url: str) -> list[str]:
    start = str(time.time_ns() - 3600 * 10**9)
    query = {"query": '{log="osd"}', "limit": "5000", "direction": "forward", "start": start}
    reply = await fetch(f"{url}/loki/api/v1/query_range?{urllib.parse.urlencode(query)}", within=30)
    return [line for s in json.loads(reply)["data"]["result"] for _, line in s["values"]]


async def test_lines_are_in_the_bucket_and_are_read_from_there_by_another_loki(
    tmp_path: Path,
) -> None:
    keys = tmp_path / "credentials"
    keys.write_text("[default]\naws_access_key_id = reader\naws_secret_access_key = secret\n")
    (tmp_path / "rules" / "fake").mkdir(parents=True)
    lines = [f"counted {number}" for number in range(_LINES)]
    with ObjectStore("logs") as store:
        environment = {
            "LOKI_DATA": str(tmp_path / "loki"),
            "LOKI_RULES": str(tmp_path / "rules"),
            "LOKI_STORE": "s3",
            "LOKI_S3_ENDPOINT": store.url,
            "LOKI_S3_BUCKET": "logs",
            "AWS_SHARED_CREDENTIALS_FILE": str(keys),
        }

        async def complete(url: str) -> bool:
            return await lines_of(url) == lines

        async with loki(tmp_path, environment) as url:
            await push(url, lines)
            await until(lambda: complete(url), "pushed lines are there", 30)
        assert store.refused == []
        assert any(key.startswith("index/") for key in store.objects), sorted(store.objects)
        assert any(key.startswith("fake/") for key in store.objects), sorted(store.objects)
        # What Loki had on its disk is gone, as with a host that is lost.
        shutil.rmtree(tmp_path / "loki")
        async with loki(tmp_path, environment) as url:
            await until(lambda: complete(url), "lines are read from the bucket", 60)
        assert store.refused == []
        assert {"PUT", "GET"} <= set(store.asked)
        print(f"{_LINES} lines in {len(store.objects)} objects")
