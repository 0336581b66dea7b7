"""The background process that keeps a lab alive after `lab up` has returned.

`lab up` calls `start`, which runs this module detached. It shows its progress on the same terminal,
and writes through a pipe that the lab is ready, or why it failed. On SIGTERM it ends the lab.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import IO, Any

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen import processes
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.processes import own_module
from cephqos_loadgen.progress import Progress

_STDERR = 2


async def start(spec: LabSpec) -> None:
    """Start a keeper and wait until its lab is ready; raises what the keeper failed with."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe:
        keeper = own_module("cephqos_loadgen.lab.keeper")
        process = await processes.start(
            [*keeper, json.dumps(spec.to_json()), str(write_end)],
            stderr=_STDERR,
            pass_fds=(write_end,),
        )
        os.close(write_end)
        try:
            report = json.loads(await asyncio.to_thread(pipe.read) or b"{}")
            if "error" in report:
                usage = report["exit_status"] == UsageError.exit_status
                raise (UsageError if usage else LabError)(report["error"])
            if "ready" not in report:
                raise LabError("the lab's keeper ended before the lab was ready")
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await asyncio.shield(process.wait())
            raise


async def _keep(spec: LabSpec, pipe: IO[str]) -> int:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - asyncio.run gives one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with Lab(spec, Progress()) as lab:
            _report(pipe, ready=True)
            await lab.ended()
    except asyncio.CancelledError:
        return 0
    except CephqosError as error:
        if not pipe.closed:
            _report(pipe, error=str(error), exit_status=error.exit_status)
        return error.exit_status
    return 0


def _report(pipe: IO[str], **report: Any) -> None:
    """Report to `start`, and from then on write nothing to its terminal."""
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write(json.dumps(report))
    with Path(os.devnull).open("w") as null:
        os.dup2(null.fileno(), _STDERR)


def main() -> int:
    """Called by `start` with the arguments SPEC-JSON PIPE-FD."""
    spec = LabSpec.from_json(json.loads(sys.argv[1]))
    pipe_fd = int(sys.argv[2])
    os.set_inheritable(pipe_fd, False)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with os.fdopen(pipe_fd, "w") as pipe:
        return asyncio.run(_keep(spec, pipe))


if __name__ == "__main__":
    sys.exit(main())
