"""Checks of a host: are the admin sockets found, may they be read, and by the right user?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import HostFacts, OsdProcess, SocketFacts
from cephqos_exporter.ceph.discovery import fsid_in_path

_LEFT_OVER: Final = ("refused", "gone")


def _closed(facts: HostFacts) -> Iterator[Finding]:
    for directory in facts.closed:
        yield Finding(
            directory.path,
            f"user {facts.user} may not read this directory, so no socket in it is found",
            "sudo cephqos doctor host   # as root, who owns the directory"
            if directory.owner == "root"
            else f"{_as_user(directory.owner)}\n{_unit_of(directory.owner)}",
        )


def _as_user(owner: str) -> str:
    """The doctor as a user. One without a name (167 on hosts of cephadm) is unknown to sudo."""
    if owner.isdecimal():
        return f"setpriv --reuid={owner} --regid={owner} --clear-groups cephqos doctor host"
    return f"sudo -u {quoted(owner)} cephqos doctor host"


def _unit_of(owner: str) -> str:
    """The exporter as a user. systemd starts nothing as a number that no user has."""
    edit = f"systemctl edit cephqos-exporter   # [Service] User={owner}"
    if not owner.isdecimal():
        return edit
    return (
        f"useradd --system --uid {owner} --user-group --no-create-home"
        f" --shell /usr/sbin/nologin ceph-{owner}\n{edit}"
    )


def _missing(facts: HostFacts) -> Iterator[Finding]:
    known = {socket.osd for socket in facts.sockets}
    for process in facts.processes:
        if process.osd not in known:
            yield _not_found(facts, process)
    if not facts.processes and not facts.sockets and not facts.closed:
        where = ", ".join(facts.patterns)
        yield Finding(
            "this host",
            f"no OSD runs here, and there is no socket of one in {where}",
            "ceph osd tree   # tells the hosts that have OSDs: run the exporter there",
        )


def _not_found(facts: HostFacts, process: OsdProcess) -> Finding:
    problem = f"it runs (pid {process.pid}), and its admin socket is not found"
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
        return True  # there, and closed to us


def _refused(facts: HostFacts) -> Iterator[Finding]:
    for socket in facts.sockets:
        if socket.failure == "permission":
            yield Finding(
                socket.osd,
                f"user {facts.user} may not connect to {socket.path}, which belongs to"
                f" {socket.owner}",
                f"{_as_user(socket.owner)}\n{_unit_of(socket.owner)}",
            )


def _state_of(socket: SocketFacts) -> str:
    """Shows whether an OSD runs, in the way that its host starts OSDs."""
    number = socket.osd.removeprefix("osd.")
    if "rook" in socket.path.parts:
        return f"kubectl get pods --all-namespaces -l {quoted(f'ceph-osd-id={number}')}"
    cluster = fsid_in_path(socket.path)
    unit = f"ceph-{cluster}@{socket.osd}" if cluster else f"ceph-osd@{number}"
    return f"systemctl status {quoted(unit)}"


def _silent(facts: HostFacts) -> Iterator[Finding]:
    answering = {socket.osd for socket in facts.sockets if not socket.failure}
    for socket in facts.sockets:
        if socket.failure in _LEFT_OVER and socket.osd not in answering:
            yield Finding(
                socket.osd,
                f"nobody listens on {socket.path}: the OSD does not run",
                _state_of(socket),
            )
        elif socket.failure and socket.failure not in (*_LEFT_OVER, "permission"):
            yield Finding(
                socket.osd,
                f"it does not answer on {socket.path} ({socket.failure})",
                f"ceph daemon {quoted(socket.path)} status   # hangs too: see its log",
            )


def _user(facts: HostFacts) -> Iterator[Finding]:
    owners = {socket.owner for socket in facts.sockets if socket.owner}
    if not owners:
        return
    for exporter in facts.exporters:
        subject = f"cephqos-exporter (pid {exporter.pid})"
        mend = _unit_of(min(owners))
        if exporter.user == "root" and "root" not in owners:
            yield Finding(
                subject,
                f"it runs as root; {min(owners)}, who owns the sockets, is enough",
                mend,
            )
        elif exporter.user not in owners and not exporter.overrides:
            yield Finding(
                subject,
                f"it runs as {exporter.user}, who may not connect to the sockets of {min(owners)}",
                mend,
            )


CHECKS: Final = (
    Check("directories-readable", _closed),
    Check("sockets-found", _missing),
    Check("sockets-permitted", _refused),
    Check("osds-answer", _silent),
    Check("exporter-user", _user),
)
