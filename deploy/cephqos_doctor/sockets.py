"""Checks of a host: are the admin sockets found, may they be read, and by the right user?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import HostFacts, SocketFacts
from cephqos_doctor.processes import OsdProcess
from cephqos_exporter.ceph.discovery import fsid_in_path

# Reasons of a failure: no process listens, and the socket is left over from an earlier start.
_LEFT_OVER: Final = ("refused", "gone")


def _closed_directories(facts: HostFacts) -> Iterator[Finding]:
    if facts.processes and not _osds_without_socket(facts):
        return  # such as the directories of Rook's monitors: there is no OSD left to look for
    for directory in facts.closed:
        yield Finding(
            directory.path,
            f"user {facts.user} may not read this directory, so no socket in it is found",
            "sudo cephqos doctor host   # as root, who owns the directory"
            if directory.owner == "root"
            else f"{_doctor_as(directory.owner)}\n{_exporter_as(directory.owner)}",
        )


def _doctor_as(owner: str) -> str:
    """The command that runs the doctor as a user. sudo needs one with a name, not 167."""
    if owner.isdecimal():
        return f"setpriv --reuid={owner} --regid={owner} --clear-groups cephqos doctor host"
    return f"sudo -u {quoted(owner)} cephqos doctor host"


def _exporter_as(owner: str) -> str:
    """The commands that run the exporter as a user. systemd needs one with a name."""
    edit = f"systemctl edit cephqos-exporter   # [Service] User={owner}"
    if not owner.isdecimal():
        return edit
    return (
        f"useradd --system --uid {owner} --user-group --no-create-home"
        f" --shell /usr/sbin/nologin ceph-{owner}\n{edit}"
    )


def _osds_without_socket(facts: HostFacts) -> list[OsdProcess]:
    """OSDs that run and of which no socket is found. Two clusters may have the same numbers."""
    live = [socket for socket in facts.sockets if socket.failure not in _LEFT_OVER]
    without = []
    for osd in dict.fromkeys(process.osd for process in facts.processes):
        sockets = [socket for socket in live if socket.osd == osd]
        running = [process for process in facts.processes if process.osd == osd]
        pids = {socket.pid for socket in sockets}
        # The pid of a socket in another namespace is not known. So processes and sockets are
        # counted: the surplus has no socket, and processes whose pid no socket has come first.
        running.sort(key=lambda process: process.pid in pids)
        without += running[: len(running) - len(sockets)]
    return without


def _sockets_missing(facts: HostFacts) -> Iterator[Finding]:
    for process in _osds_without_socket(facts):
        yield _socket_missing(facts, process)
    if not facts.processes and not facts.sockets and not facts.closed and not facts.stuck:
        where = ", ".join(facts.patterns)
        yield Finding(
            "this host",
            f"no OSD runs here, and there is no socket of one in {where}",
            "ceph osd tree   # tells the hosts that have OSDs: run the exporter there",
        )


def _socket_missing(facts: HostFacts, process: OsdProcess) -> Finding:
    problem = f"it runs (pid {process.pid}), and its admin socket is not found"
    failed = [s.path for s in facts.sockets if s.osd == process.osd and s.failure]
    if failed:
        problem += f"; {failed[0]} is left over from an earlier start"
    here = sorted({str(Path(path).parent) for path in process.sockets if _exists(path)})
    if here:
        flag = f"--discovery.sockets={quoted(here[0] + '/*.asok')}"
        return Finding(process.osd, problem, f"cephqos-exporter {flag}")
    if process.sockets:
        inside = Path(process.sockets[0]).parent
        return Finding(
            process.osd,
            f"{problem}; in its container it is in {inside}",
            f"mount a directory of the host at {inside} in the OSD's container,"
            " and name it in --discovery.sockets",
        )
    closed = " (one of the closed directories may have it)" if facts.closed else ""
    return Finding(
        process.osd,
        problem + closed,
        f"ceph config get {process.osd} admin_socket   # then --discovery.sockets=DIRECTORY",
    )


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:
        return True  # it is there, but this user may not look


def _not_permitted(facts: HostFacts) -> Iterator[Finding]:
    for socket in facts.sockets:
        if socket.failure == "permission" and facts.user in (socket.owner, "root"):
            yield Finding(
                socket.osd,
                f"user {facts.user} may not connect to {socket.path}, which belongs to"
                f" {socket.owner}: SELinux or AppArmor forbid it, or a container has no"
                " capabilities",
                "sudo journalctl --dmesg --grep 'avc.*denied|apparmor.*DENIED'   # what forbids it;"
                " containers: --security-opt=label=disable --security-opt=apparmor=unconfined",
            )
        elif socket.failure == "permission":
            yield Finding(
                socket.osd,
                f"user {facts.user} may not connect to {socket.path}, which belongs to"
                f" {socket.owner}",
                f"{_doctor_as(socket.owner)}\n{_exporter_as(socket.owner)}",
            )


def _status_command(socket: SocketFacts) -> str:
    """The command that shows whether an OSD runs, as its host starts OSDs."""
    number = socket.osd.removeprefix("osd.")
    if "rook" in socket.path.parts:
        return f"kubectl get pods --all-namespaces -l {quoted(f'ceph-osd-id={number}')}"
    cluster = fsid_in_path(socket.path)
    unit = f"ceph-{cluster}@{socket.osd}" if cluster else f"ceph-osd@{number}"
    return f"systemctl status {quoted(unit)}"


def _hanging(facts: HostFacts) -> Iterator[Finding]:
    for pid in facts.stuck:
        yield Finding(
            "an OSD",
            f"it hangs in the kernel (pid {pid}): not even its arguments can be read",
            f"sudo cat /proc/{pid}/stack   # what it waits for, mostly a device: dmesg",
        )
    for osd in facts.osds:
        if osd.directory_hangs:
            data = osd.config.text("osd_data")
            yield Finding(
                osd.osd,
                f"its data directory {data} does not answer: the disk below it may have failed",
                "dmesg -T   # errors of that disk; do not list the directory: it may hang, too",
            )


def _not_answering(facts: HostFacts) -> Iterator[Finding]:
    yield from _hanging(facts)
    # An OSD that runs has its socket in another place: the finding `sockets-found` names it.
    running = {socket.osd for socket in facts.sockets if not socket.failure}
    running |= {process.osd for process in facts.processes}
    for socket in facts.sockets:
        if socket.unanswered:
            command = socket.unanswered[0].partition(" (")[0]
            yield Finding(
                socket.osd,
                f"it answers on {socket.path}, but not to {', '.join(socket.unanswered)}",
                f"ceph daemon {quoted(socket.path)} {command}   # hangs too: see its log",
            )
        if socket.failure in _LEFT_OVER and socket.osd not in running:
            yield Finding(
                socket.osd,
                f"no process listens on {socket.path}: the OSD does not run",
                _status_command(socket),
            )
        elif socket.failure == "descriptors":
            yield Finding(
                socket.osd,
                "it was not asked: this command may not open that many files",
                "ulimit -n 65536   # and once more",
            )
        elif socket.failure and socket.failure not in (*_LEFT_OVER, "permission"):
            yield Finding(
                socket.osd,
                f"it does not answer on {socket.path} ({socket.failure})",
                f"ceph daemon {quoted(socket.path)} status   # hangs too: see its log",
            )


def _wrong_user(facts: HostFacts) -> Iterator[Finding]:
    owners = {socket.owner for socket in facts.sockets if socket.owner}
    if not owners:
        return
    users = {exporter.user for exporter in facts.exporters}
    one_overrides = any(exporter.overrides for exporter in facts.exporters)
    for exporter in facts.exporters:
        subject = f"cephqos-exporter (pid {exporter.pid})"
        unserved = min(owners - users or owners)  # whose sockets no exporter reads
        if exporter.overrides:
            if exporter.user == "root" and "root" not in owners:
                yield Finding(
                    subject,
                    f"it runs as root; {min(owners)}, who owns the sockets, is enough",
                    _exporter_as(min(owners)),
                )
        elif exporter.user not in owners:
            yield Finding(subject, _may_not(exporter.user, unserved), _exporter_as(unserved))
        elif owners - users and not one_overrides:
            yield Finding(subject, _may_not(exporter.user, unserved), _second_exporter_as(unserved))


def _may_not(user: str, owner: str) -> str:
    return f"it runs as {user}, who may not connect to the sockets of {owner}"


def _second_exporter_as(owner: str) -> str:
    """One exporter has one user, and these sockets have two owners."""
    return (
        f"systemctl edit --full --force cephqos-exporter-{owner}   # as cephqos-exporter.service,"
        f" with User={owner}, its own port and --discovery.sockets"
    )


CHECKS: Final = (
    Check("directories-readable", _closed_directories),
    Check("sockets-found", _sockets_missing),
    Check("sockets-permitted", _not_permitted),
    Check("osds-answer", _not_answering),
    Check("exporter-user", _wrong_user),
)
