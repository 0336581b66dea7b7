"""The background process that keeps a lab alive after `lab up` has returned.

`lab up` starts it detached and reads its progress as JSON lines from a pipe until the lab is ready
or has failed. It ends on SIGTERM, and the lab ends with it.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen import processes
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.processes import own_module
from cephqos_loadgen.progress import Progress, Say


class _PipeProgress(Progress):
    """Progress sent to the `lab up` that started us, which reads it until the lab is ready."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        start = time.monotonic()
        self.send(begin=title)
        yield lambda text: self.send(say=text)
        self.send(done=title, seconds=time.monotonic() - start)

    def note(self, text: str) -> None:
        self.send(note=text)

    def send(self, **message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(json.dumps(message) + "\n")
            self._pipe.flush()


async def start(spec: LabSpec, progress: Progress) -> None:
    """Start a keeper and wait until its lab is ready; raises what the keeper failed with."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe:
        keeper = own_module("cephqos_loadgen.lab.keeper")
        process = await processes.start(
            [*keeper, json.dumps(spec.to_json()), str(write_end)], pass_fds=(write_end,)
        )
        os.close(write_end)
        try:
            await _follow(pipe, progress)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await asyncio.shield(process.wait())
            raise


async def _follow(pipe: IO[bytes], progress: Progress) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    with contextlib.closing(transport), contextlib.ExitStack() as steps:
        say: Say | None = None
        while line := await reader.readline():
            match json.loads(line):
                case {"begin": title}:
                    say = steps.enter_context(progress.step(title))
                case {"say": text} if say:
                    say(text)
                case {"done": _}:
                    steps.close()
                case {"note": text}:
                    progress.note(text)
                case {"error": text, "exit_status": status}:
                    raise (UsageError if status == UsageError.exit_status else LabError)(text)
                case {"ready": True}:
                    return
    raise LabError("the lab's keeper ended without an error message")


async def _keep(spec: LabSpec, pipe: IO[str]) -> int:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - asyncio.run gives one
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    progress = _PipeProgress(pipe)
    try:
        async with Lab(spec, progress) as lab:
            progress.send(ready=True)
            pipe.close()
            await lab.ended()
    except asyncio.CancelledError:
        return 0
    except CephqosError as error:
        progress.send(error=str(error), exit_status=error.exit_status)
        return error.exit_status
    return 0


def main() -> int:
    """SPEC-JSON PIPE-FD."""
    spec = LabSpec.from_json(json.loads(sys.argv[1]))
    pipe_fd = int(sys.argv[2])
    os.set_inheritable(pipe_fd, False)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with os.fdopen(pipe_fd, "w") as pipe:
        # This process has no terminal: a crash must be shown by `lab up`.
        sys.excepthook = lambda kind, error, trace: _PipeProgress(pipe).send(
            error="".join(traceback.format_exception(kind, error, trace)), exit_status=1
        )
        return asyncio.run(_keep(spec, pipe))


if __name__ == "__main__":
    sys.exit(main())
