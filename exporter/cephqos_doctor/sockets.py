"""Checks of a host: are the admin sockets found, may they be read, and by the right user?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import HostFacts, OsdProcess

_LEFT_OVER: Final = ("refused", "gone")


def _closed(facts: HostFacts) -> Iterator[Finding]:
    for directory in facts.closed:
        yield Finding(
            directory,
            f"user {facts.user} may not read this directory, so no socket in it is found",
            f"sudo -u ceph cephqos doctor host   # run the exporter as that user too: {_UNIT}",
        )


_UNIT: Final = "User=ceph in its unit"


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
                f"sudo -u {_sudo_name(socket.owner)} cephqos doctor host   # the exporter too:"
                f" User={socket.owner} in its unit",
            )


def _sudo_name(owner: str) -> str:
    """A user without a name is a number (167 on hosts of cephadm), which sudo wants marked."""
    return quoted(f"#{owner}" if owner.isdecimal() else owner)


def _silent(facts: HostFacts) -> Iterator[Finding]:
    answering = {socket.osd for socket in facts.sockets if not socket.failure}
    for socket in facts.sockets:
        if socket.failure in _LEFT_OVER and socket.osd not in answering:
            yield Finding(
                socket.osd,
                f"nobody listens on {socket.path}: the OSD does not run",
                f"systemctl status {quoted('ceph-osd@' + socket.osd.removeprefix('osd.'))}",
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
        mend = f"systemctl edit cephqos-exporter   # [Service] User={min(owners)}"
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
