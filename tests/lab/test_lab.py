"""The lab on real Ceph: it comes up, serves, and leaves nothing, however it ends."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recorded import RELEASES
from tests.waiting import until, wait_until

from cephqos_base.errors import CephqosError, UsageError
from cephqos_exporter.ceph.cluster import tied
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab import checks
from cephqos_loadgen.lab.isolation.ports import reserve_ports
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.paths import LabPaths, labs_dir
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.lab.state import is_alive

from .conftest import LabPool, lab_name

CEPHQOS = [sys.executable, "-m", "cephqos_base"]


def cephqos(*argv: str, data: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CEPHQOS, *argv], capture_output=True, text=True, timeout=150, check=False, input=data
    )


def traces(name: str) -> dict[str, list[str]]:
    """Everything of a lab that can be seen on this machine, by looking."""
    paths = LabPaths.of(name)
    prefix = f"{paths.dir}"
    processes = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            text = cmdline.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            conf = f"{prefix}/ceph.conf" in text
            if conf or (f" {name} " in text and "lab.isolation.process_one" in text):
                processes.append(text)
    mounts = [
        line for line in Path("/proc/self/mountinfo").read_text().splitlines() if prefix in line
    ]
    loops = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # detached since it was listed
            loops += [it for it in [file.read_text().strip()] if it.startswith(prefix)]
    files = [str(path) for path in (paths.dir,) if path.exists()]
    cgroups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/cephqos-{name}-*")]
    found = {
        "processes": processes,
        "mounts": mounts,
        "loop devices": loops,
        "files": files,
        "cgroups": cgroups,
    }
    return {kind: what for kind, what in found.items() if what}


def wait_until_gone(name: str) -> None:
    wait_until(lambda: not traces(name), lambda: f"gone is {traces(name)}")


@pytest.fixture
def own_labs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of labs that nobody else uses: each `up`, of other tests too, cleans the dead ones
    of its folder. Its name is short, as the sockets of daemons are in it."""
    labs_dir().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="l-", dir=labs_dir().parent) as folder:
        Path(folder).chmod(0o755)  # daemons run as another user
        monkeypatch.setenv("CEPHQOS_LABS", folder)
        yield


@pytest.fixture
def child_lab(own_labs: None) -> Iterator[subprocess.Popen[str]]:
    """A Python process that keeps a lab of its own and says its name when it is up."""
    name = lab_name("child")
    program = f"""
import asyncio, signal
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec
# Whoever runs the tests in the background may have had it ignored, for all of its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
async def main():
    async with Lab(LabSpec(name={name!r}, osds=2, backing="loop")) as lab:
        await lab.faults.throttle(0, wiops=500)
        print("up", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    child = subprocess.Popen(
        tied([sys.executable, "-c", program]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout and child.stdout.readline().strip() == "up", child.communicate()[1]
        child.args = name  # for the tests
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("release", RELEASES)
async def test_an_object_written_with_rados_is_read_back(shared_lab: RunningLab) -> None:
    await shared_lab.exec(["ceph", "osd", "pool", "create", "basics", "8"])
    await shared_lab.exec(["rados", "-p", "basics", "put", "greeting", "-"], data="hello, osd")
    done = await shared_lab.exec(["rados", "-p", "basics", "get", "greeting", "-"])
    assert done.stdout == "hello, osd"
    async with shared_lab.client() as client:
        assert "basics" in await client.command("osd pool ls")
        await client.command(
            "osd pool delete",
            pool="basics",
            pool2="basics",
            yes_i_really_really_mean_it=True,
        )
        assert "basics" not in await client.command("osd pool ls")


async def test_the_status_names_living_processes_sockets_and_devices(
    shared_lab: RunningLab,
) -> None:
    status = json.loads(cephqos("lab", "status", "--json", "--name", shared_lab.paths.name).stdout)
    async with shared_lab.client() as client:
        told = await client.command("status")
        versions = await client.command("versions")
    assert status["fsid"] == told["fsid"]
    assert all(f"ceph version {status['version']}" in text for text in versions["osd"])
    assert len(status["osds"]) == told["osdmap"]["num_up_osds"] == 3
    for osd in status["osds"]:
        cmdline = Path(f"/proc/{osd['pid']}/cmdline").read_bytes().split(b"\0")
        assert cmdline[0] == b"ceph-osd"
        assert Path(osd["socket"]).is_socket()
        assert Path(osd["device"]).is_block_device()


async def test_the_tree_brings_fio_with_cephs_engines_and_the_prometheus_tools(
    shared_lab: RunningLab,
) -> None:
    engines = (await shared_lab.exec(["fio", "--enghelp"])).stdout.split()
    assert {"rbd", "rados"} <= set(engines)
    for tool in ("prometheus", "promtool", "prometheus-alertmanager", "amtool"):
        await shared_lab.exec([tool, "--version"])


async def test_exec_gives_the_commands_own_exit_status(shared_lab: RunningLab) -> None:
    name = shared_lab.paths.name
    assert cephqos("lab", "exec", "--name", name, "--", "true").returncode == 0
    assert cephqos("lab", "exec", "--name", name, "--", "sh", "-c", "exit 7").returncode == 7


async def test_a_manager_that_crashes_is_started_again(labs: LabPool) -> None:
    """As its unit does elsewhere. Without, a lab that lost it answers no command of it any more."""
    lab = labs.shared("reef")
    before = (await lab.pids())["mgr.x"]
    os.kill(before, signal.SIGSEGV)

    async def answers() -> bool:
        async with lab.client() as client:
            with contextlib.suppress(CephqosError):
                return bool(await client.command("balancer status", target="mgr"))
        return False

    await until(answers, "an answer of the manager")
    assert (await lab.pids())["mgr.x"] != before


def test_three_releases_run_side_by_side(labs: LabPool) -> None:
    running = [labs.shared(release) for release in ("pacific", "reef", "tentacle")]
    listed = json.loads(cephqos("lab", "list", "--json").stdout)
    states = {row["name"]: row for row in listed}
    assert all(states[lab.paths.name]["state"] == "up" for lab in running)
    assert len({lab.state.port for lab in running}) == 3


def test_a_second_up_with_the_same_name_says_so(labs: LabPool) -> None:
    name = labs.shared("reef").paths.name
    second = cephqos("lab", "up", "--name", name)
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert f"lab '{name}' is up already" in second.stderr
    assert is_alive(LabPaths.of(name))


def test_the_command_line_brings_a_lab_up_and_down(release: str) -> None:
    name = lab_name("cli")
    up = cephqos("lab", "up", "--name", name, "--release", release, "--osds", "1")
    assert up.returncode == 0, up.stderr
    put = cephqos("lab", "exec", "--name", name, "--", "ceph", "osd", "stat", "--format=json")
    assert json.loads(put.stdout)["num_up_osds"] == 1
    down = cephqos("lab", "down", "--name", name)
    assert down.returncode == 0, down.stderr
    assert f"lab '{name}' ended: removed {LabPaths.of(name).dir}\n" in down.stdout
    wait_until_gone(name)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.full), signal.SIGINT]
)
def test_a_lab_ends_with_its_parent_process(
    child_lab: subprocess.Popen[str], number: signal.Signals
) -> None:
    name = str(child_lab.args)
    before = traces(name)
    assert {"processes", "loop devices", "files", "cgroups"} <= before.keys()
    child_lab.send_signal(number)
    child_lab.wait(60)
    wait_until_gone(name)


def test_a_lab_ends_when_its_process_1_is_killed(child_lab: subprocess.Popen[str]) -> None:
    name = str(child_lab.args)
    os.kill(_state(name)["init_pid"], signal.SIGKILL)
    wait_until_gone(name)
    assert child_lab.poll() is None


def test_what_a_crash_left_is_cleaned_by_the_next_up(child_lab: subprocess.Popen[str]) -> None:
    name = str(child_lab.args)
    init = _state(name)["init_pid"]
    child_lab.send_signal(signal.SIGSTOP)  # so that neither can clean up after the other
    os.kill(init, signal.SIGKILL)
    child_lab.kill()
    child_lab.wait(60)
    wait_until(lambda: not is_alive(LabPaths.of(name)), "the lab ends")
    assert LabPaths.of(name).dir.exists()
    again = cephqos("lab", "up", "--name", name, "--osds", "1")
    assert again.returncode == 0, again.stderr
    assert f"lab '{name}' had been killed: removed {LabPaths.of(name).dir}\n" in again.stderr
    assert cephqos("lab", "down", "--name", name).returncode == 0
    wait_until_gone(name)


def test_down_after_the_keeper_has_died_says_what_became_of_the_lab() -> None:
    name = lab_name("keeper")
    for left in (True, False):  # while process 1 clears up, and when nothing is left
        up = cephqos("lab", "up", "--name", name, "--osds", "1")
        assert up.returncode == 0, up.stderr
        os.kill(_state(name)["keeper_pid"], signal.SIGKILL)
        if not left:
            wait_until_gone(name)
        down = cephqos("lab", "down", "--name", name)
        if down.returncode == 2:
            assert f"no lab '{name}' is up" in down.stderr
            assert down.stderr.strip().endswith("nothing to end")
        else:
            assert down.returncode == 0, down.stderr
            assert left, "there was nothing any more"
        wait_until_gone(name)


def test_down_of_a_lab_whose_keeper_and_process_1_have_died_removes_its_files(
    own_labs: None,
) -> None:
    name = lab_name("corpse")
    up = cephqos("lab", "up", "--name", name, "--osds", "1", "--backing", "loop")
    assert up.returncode == 0, up.stderr
    state = _state(name)
    os.kill(state["keeper_pid"], signal.SIGSTOP)  # so that neither clears up after the other
    os.kill(state["init_pid"], signal.SIGKILL)
    os.kill(state["keeper_pid"], signal.SIGKILL)
    wait_until(lambda: not is_alive(LabPaths.of(name)), "the lab ends")
    assert LabPaths.of(name).dir.exists()
    down = cephqos("lab", "down", "--name", name)
    assert down.returncode == 0, down.stderr
    assert down.stdout == f"lab '{name}' had been killed: removed {LabPaths.of(name).dir}\n"
    wait_until_gone(name)


async def test_a_foreign_process_on_ports_of_the_range_is_passed_by() -> None:
    """Daemons take the next port that is free; only the monitor's two are fixed, and asked for."""
    first, reservation = reserve_ports(None)
    taken = {first + offset for offset in (2, 3, 4, 7, 11)}
    async with contextlib.AsyncExitStack() as foreign:
        for port in taken:
            server = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
            await foreign.enter_async_context(server)
        reservation.close()  # for a moment others could have it
        spec = LabSpec(name=lab_name("ports"), osds=2, port=first)
        async with Lab(spec) as lab, lab.client() as client:
            dump = await client.command("osd dump")
            put = ["rados", "-p", "p", "put", "object", "-"]
            await lab.exec(["ceph", "osd", "pool", "create", "p", "8"])
            await lab.exec(put, data="x")
    used = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", json.dumps(dump["osds"]))}
    assert used
    assert not used & taken
    assert all(first <= port < first + 400 for port in used)


def test_interrupting_up_leaves_nothing() -> None:
    name = lab_name("ctrlc")
    up = subprocess.Popen(
        [*CEPHQOS, "lab", "up", "--name", name], stderr=subprocess.PIPE, text=True
    )
    wait_until(LabPaths.of(name).socket("mon.a").exists, "a monitor is up")
    up.send_signal(signal.SIGINT)
    assert up.wait(60) == 130
    assert up.stderr
    up.stderr.close()
    wait_until_gone(name)


def test_without_debootstrap_the_first_up_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in checks.TOOLS:
        (bare / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(bare))
    monkeypatch.setenv("CEPHQOS_CACHE", str(tmp_path / "cache"))
    up = cephqos("lab", "up", "--name", lab_name("bare"))
    assert up.returncode == 2
    assert up.stderr == (
        "cephqos: debootstrap not found: install it (apt-get install debootstrap)\n"
    )


async def test_an_option_that_the_release_lacks_is_refused_before_anything_starts(
    release: str,
) -> None:
    setting = CephOption("osd", "osd_no_such_option", "1")
    lab = Lab(LabSpec(name=lab_name("option"), release=release, settings=(setting,)))
    with pytest.raises(UsageError, match=r"osd_no_such_option.*option not found"):
        async with lab:
            pass


async def test_a_cluster_that_cannot_come_up_fails_with_the_daemons_last_words() -> None:
    name = lab_name("broken")
    one_port = ("--set", "osd:ms_bind_port_min=1", "--set", "osd:ms_bind_port_max=1")
    asked = cephqos("lab", "up", "--name", name, "--osds", "1", *one_port)
    assert asked.returncode == 1
    assert "osd.0 ended with status" in asked.stderr
    assert "last lines of ceph-osd.0" in asked.stderr
    assert "unable to bind" in asked.stderr
    wait_until_gone(name)


def _state(name: str) -> dict[str, int]:
    state: dict[str, int] = json.loads(LabPaths.of(name).state.read_text())
    return state


async def test_spec_options_are_what_the_daemons_see() -> None:
    spec = LabSpec(
        name=lab_name("options"),
        osds=1,
        backing="loop",
        rotational=True,
        io_scheduler="bfq",
        db_size=1536 << 20,
        setuser="ceph",
        op_queue="wpq",
        cpus=((0, (1,)),),
        settings=(CephOption("osd", "osd_max_backfills", "7"),),
    )
    async with Lab(spec) as lab, lab.client() as client:
        metadata = await client.command("osd metadata", id=0)
        config = await client.command("config show", target="osd.0")
        status = await lab.status()
        queue = Path("/sys/block") / Path(status["osds"][0]["device"]).name / "queue"
        process = Path(f"/proc/{status['osds'][0]['pid']}/status").read_text()
        scheduler = (queue / "scheduler").read_text()
    assert metadata["bluestore_bdev_type"] == "hdd"
    assert metadata["bluefs_db_type"] == "ssd"
    assert config["osd_op_queue"] == "wpq"
    assert config["osd_max_backfills"] == "7"
    assert "[bfq]" in scheduler
    assert "Cpus_allowed_list:\t1\n" in process
    assert "Uid:\t64045" in process
    await asyncio.to_thread(wait_until_gone, spec.name)


def number_at(device: Path, place: int, form: str) -> int:
    with device.open("rb") as file:
        file.seek(place)
        (found,) = struct.unpack(form, file.read(struct.calcsize(form)))
    return int(found)


# The options of mkfs, and where a file system says what it was made with: place, format, value.
@pytest.mark.parametrize(
    ("fs", "mkfs", "said"),
    [
        ("xfs", "-i size=1024", (104, ">H", 1024)),  # bytes of an inode
        pytest.param("ext4", "-I 512", (1024 + 88, "<H", 512), marks=pytest.mark.full),
        # Bytes of a node.
        pytest.param("btrfs", "-n 32k", (65536 + 148, "<I", 32768), marks=pytest.mark.full),
    ],
)
async def test_pacific_runs_filestore_with_options_of_mkfs_and_mount(
    fs: str, mkfs: str, said: tuple[int, str, int]
) -> None:
    spec = LabSpec(
        name=lab_name(fs),
        release="pacific",
        osds=1,
        backing="loop",
        objectstore="filestore",
        fs=fs,
        mkfs=mkfs,
        mount="noatime,nodiratime",
    )
    async with Lab(spec) as lab, lab.client() as client:
        metadata = await client.command("osd metadata", id=0)
        status = await lab.status()
        mounts = Path(f"/proc/{status['osds'][0]['pid']}/mounts").read_text().splitlines()
        place, form, value = said
        assert number_at(Path(status["osds"][0]["device"]), place, form) == value
        mounted = [str(lab.paths.data("osd.0")), fs]
    (options,) = [line.split()[3] for line in mounts if line.split()[1:3] == mounted]
    assert {"noatime", "nodiratime"} <= set(options.split(","))
    assert metadata["osd_objectstore"] == "filestore"
    # FileStore calls every filesystem without snapshots of its own "generic".
    assert metadata["filestore_backend"] == {"ext4": "generic"}.get(fs, fs)


def test_the_labs_programs_are_themselves_with_its_folder_first_in_the_path(
    shared_lab: RunningLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder has the same name inside, where the wrappers would be found again."""
    monkeypatch.setenv("PATH", f"{shared_lab.paths.bin}:{os.environ['PATH']}")
    done = subprocess.run(["ceph", "fsid"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, shared_lab.state.fsid)
    argv = shared_lab.enter_argv(["fio", "--version"])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("fio-")
