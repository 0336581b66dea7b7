"""A handle on a running lab: commands inside it, its monitor, its process 1."""

from collections.abc import Sequence
from subprocess import CompletedProcess
from typing import Any

from cephqos_exporter.ceph.monclient import ClusterAccess, MonClient
from cephqos_loadgen import processes
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.isolation import namespaces
from cephqos_loadgen.lab.isolation.one_budget import STORAGE
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.lab.state import LabState


class LabHandle:
    """A lab that is up: runs commands inside, connects to its monitor, asks its process 1."""

    def __init__(self, paths: LabPaths, state: LabState) -> None:
        self.paths = paths
        self.state = state

    @property
    def spec(self) -> LabSpec:
        return self.state.spec

    def enter_argv(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` inside this lab. It ends with its parent process."""
        return namespaces.enter_argv(self.state.init_pid, self.paths.root, argv)

    async def exec(
        self, argv: Sequence[str], *, within: float = 60.0, data: str = "", check: bool = True
    ) -> CompletedProcess[str]:
        """Run a command inside the lab to its end; with `check` a failure is a LabError."""
        named = " ".join(argv)
        done = await processes.run(self.enter_argv(argv), within=within, data=data, named=named)
        if check and done.returncode != 0:
            output = (done.stderr or done.stdout).strip() or "it said nothing"
            raise LabError(f"{named} {processes.how_it_ended(done.returncode)}: {output}")
        return done

    def client(self) -> MonClient:
        """A connection to the cluster for commands; close it, or use it as a context."""
        python = tuple(self.enter_argv(["python3"]))
        return MonClient(ClusterAccess(conf=str(self.paths.conf), python=python))

    async def ask_process_one(self, **request: Any) -> Any:
        return await namespaces.ask_process_one(self.paths.control, **request)

    async def pids(self) -> dict[str, int]:
        """The running Ceph daemons' pids as the host counts them."""
        listed = await self.ask_process_one(op="list")
        pids = {
            name: namespaces.host_pid(self.state.init_pid, inner)
            for name, inner in listed["daemons"].items()
            if name != STORAGE
        }
        return {name: pid for name, pid in pids.items() if pid is not None}
