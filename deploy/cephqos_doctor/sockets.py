"""Checks of a host: are the admin sockets found, may they be read, and by the right user?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import HostFacts, SocketFacts
from cephqos_doctor.processes import OsdProcess
from cephqos_exporter.ceph.discovery import fsid_in_path

_LEFT_OVER: Final = ("refused", "gone")


def _closed(facts: HostFacts) -> Iterator[Finding]:
    if facts.processes and not _hidden(facts):
        return  # such as the directories of Rook's monitors: there is no OSD left to look for
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


def _hidden(facts: HostFacts) -> list[OsdProcess]:
    """OSDs that run and of which no socket is found. Two clusters may have the same numbers."""
    live = [one for one in facts.sockets if one.failure not in _LEFT_OVER]
    hidden = []
    for osd in dict.fromkeys(process.osd for process in facts.processes):
        sockets = [one for one in live if one.osd == osd]
        running = [one for one in facts.processes if one.osd == osd]
        known = {one.pid for one in sockets}
        # Where no socket tells a pid (another namespace), their number has to do.
        hidden += sorted(running, key=lambda one: one.pid in known)[: len(running) - len(sockets)]
    return hidden


def _missing(facts: HostFacts) -> Iterator[Finding]:
    for process in _hidden(facts):
        yield _not_found(facts, process)
    if not facts.processes and not facts.sockets and not facts.closed and not facts.stuck:
        where = ", ".join(facts.patterns)
        yield Finding(
            "this host",
            f"no OSD runs here, and there is no socket of one in {where}",
            "ceph osd tree   # tells the hosts that have OSDs: run the exporter there",
        )


def _not_found(facts: HostFacts, process: OsdProcess) -> Finding:
    problem = f"it runs (pid {process.pid}), and its admin socket is not found"
    old = [one.path for one in facts.sockets if one.osd == process.osd and one.failure]
    if old:
        problem += f"; {old[0]} is left over from an earlier start"
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


def _silent(facts: HostFacts) -> Iterator[Finding]:
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
                _state_of(socket),
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


def _user(facts: HostFacts) -> Iterator[Finding]:
    owners = {socket.owner for socket in facts.sockets if socket.owner}
    if not owners:
        return
    users = {exporter.user for exporter in facts.exporters}
    able = any(exporter.overrides for exporter in facts.exporters)
    for exporter in facts.exporters:
        subject = f"cephqos-exporter (pid {exporter.pid})"
        closed = sorted(owners - users) or sorted(owners)
        if exporter.overrides:
            if exporter.user == "root" and "root" not in owners:
                yield Finding(
                    subject,
                    f"it runs as root; {min(owners)}, who owns the sockets, is enough",
                    _unit_of(min(owners)),
                )
        elif exporter.user not in owners:
            yield Finding(subject, _may_not(exporter.user, closed[0]), _unit_of(closed[0]))
        elif owners - users and not able:
            yield Finding(subject, _may_not(exporter.user, closed[0]), _second_unit(closed[0]))


def _may_not(user: str, owner: str) -> str:
    return f"it runs as {user}, who may not connect to the sockets of {owner}"


def _second_unit(owner: str) -> str:
    """One exporter has one user, and these sockets have two owners."""
    return (
        f"systemctl edit --full --force cephqos-exporter-{owner}   # as cephqos-exporter.service,"
        f" with User={owner}, its own port and --discovery.sockets"
    )


CHECKS: Final = (
    Check("directories-readable", _closed),
    Check("sockets-found", _missing),
    Check("sockets-permitted", _refused),
    Check("osds-answer", _silent),
    Check("exporter-user", _user),
)
