"""fio: command lines."""

from collections.abc import Mapping
from dataclasses import dataclass

from cephqos_loadgen.engines.place import Place, pinned
from cephqos_loadgen.scenario.model import Fio


@dataclass(frozen=True, slots=True)
class Client:
    """One fio process of a phase: its name, and the volumes that it loads."""

    name: str
    volumes: tuple[int, ...]


def clients(action: Fio) -> list[Client]:
    """The processes that share out the volumes; engines without volumes have one job each."""
    if action.engine in ("rbd", "krbd", "nbd"):
        share = action.volumes // action.clients
        return [
            Client(f"client.{n}", tuple(range(n * share, (n + 1) * share)))
            for n in range(action.clients)
        ]
    return [Client(f"client.{n}", (n,)) for n in range(action.clients)]


def nbd_socket(place: Place, phase: str, volume: int) -> str:
    return f"{place.work}/{phase}.{volume}.nbd"


def qemu_nbd_argv(action: Fio, place: Place, phase: str, volume: int) -> list[str]:
    """QEMU's block layer, without a guest, on one image."""
    image = f"rbd:{action.pool}/volume.{volume}:conf={place.conf}:id={place.user}"
    if place.keyring:
        image += f":keyring={place.keyring}"
    options = ["--socket", nbd_socket(place, phase, volume), "--format=raw"]
    return ["qemu-nbd", *options, f"--cache={action.cache}", "--persistent", image]


def argv(
    action: Fio,
    client: Client,
    place: Place,
    *,
    phase: str,
    seconds: float,
    depth: int | None = None,
    devices: Mapping[int, str] | None = None,
) -> list[str]:
    """The command line of one client; `devices` are the mapped krbd devices by volume."""
    command = [*pinned(action.cpus), "fio"]
    command += ["--output-format=json+", "--status-interval=1", "--eta=never"]
    for volume in client.volumes:
        command.append(f"--name=volume.{volume}")
        command += _target(action, client, place, phase, volume, devices or {})
        command += [f"--rw={action.rw}", f"--bs={action.block_size}"]
        command += [f"--iodepth={depth or action.depth}"]
        command += ["--time_based=1", f"--runtime={max(1, round(seconds))}"]
        if action.size:
            command.append(f"--size={action.size}")
        if action.rate_iops:
            command.append(f"--rate_iops={max(1, action.rate_iops // action.clients)}")
        if action.read_percent is not None:
            command.append(f"--rwmixread={action.read_percent}")
        command += [f"--{name}={value}" for name, value in action.options]
    return command


def _target(
    action: Fio, client: Client, place: Place, phase: str, volume: int, devices: Mapping[int, str]
) -> list[str]:
    engine = action.engine
    if engine == "rbd":
        image = [f"--pool={action.pool}", f"--rbdname=volume.{volume}"]
        return ["--ioengine=rbd", f"--clientname={place.user}", *image]
    if engine == "rados":
        # Object names come from the job's name and number: clients must not share them.
        names = [f"--filename={phase}.{client.name}"]
        return ["--ioengine=rados", f"--clientname={place.user}", f"--pool={action.pool}", *names]
    if engine == "nbd":
        socket = nbd_socket(place, phase, volume)
        return ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"]
    if engine == "krbd":
        device = devices.get(volume, f"/dev/rbd/{action.pool}/volume.{volume}")
        return ["--ioengine=libaio", "--direct=1", f"--filename={device}"]
    return [f"--ioengine={engine}", "--direct=1", f"--filename={action.path}"]


def ends_by_itself(action: Fio) -> bool:
    """Whether fio is told to end when its figures no longer change."""
    return any(name == "steadystate" for name, _ in action.options)


def prefill_argv(pool: str, volume: int, place: Place) -> list[str]:
    """Write an image through once, so that every block exists."""
    job = [f"--name=volume.{volume}", "--ioengine=rbd", f"--clientname={place.user}"]
    job += [f"--pool={pool}", f"--rbdname=volume.{volume}", "--rw=write", "--bs=4M", "--iodepth=8"]
    return ["fio", "--output-format=json+", "--status-interval=1", "--eta=never", *job]
