"""Checks of a cluster: does it let us in, and is the key neither too narrow nor too wide?"""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.cluster_facts import DENIED, ClusterFacts
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_exporter.ceph.monclient import CommandFailed

# The caps that docs/install/security.md documents; a test compares.
MON_CAPS: Final = 'allow service mon r, allow service osd r, allow command "config get"'
MGR_CAPS: Final = 'allow command "pg dump", allow command "pg ls", allow command "pg ls-by-primary"'


def set_caps(name: str) -> str:
    """The command that gives a key what the role cluster needs, and nothing else."""
    return f"ceph auth caps {quoted(name)} mon '{MON_CAPS}' mgr '{MGR_CAPS}'"


def refusal(name: str, error: CommandFailed) -> str:
    """What the cluster answered, and the caps that the key needs if that is why."""
    needed = f"; expected the caps of the role cluster: {set_caps(name)}"
    return f"{name}: {error}{needed if error.code in DENIED else ''}"


def _unreachable(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.bindings_missing:
        yield Finding(
            "this host",
            f"no Python with Ceph's rados module: {facts.failure}",
            "apt-get install python3-rados   # or say where: --cluster.python",
        )
    elif facts.failure:
        yield Finding(
            "the cluster",
            f"{facts.name} gets no connection: {facts.failure}",
            _likely_remedy(facts),
        )


def _likely_remedy(facts: ClusterFacts) -> str:
    """What most often helps against an error of librados."""
    name, error = quoted(facts.name), facts.failure
    if "conf_read_file" in error:
        return (
            "ceph config generate-minimal-conf > ceph.conf   # where an admin key is; here it is"
            " /etc/ceph/ceph.conf, or --cluster.conf"
        )
    if "[errno 2]" in error:
        return f"ceph auth get {name} -o KEYRING   # readable by this user; then --cluster.keyring"
    if "[errno 110]" in error or "deadline" in error:
        return (
            "ceph --connect-timeout 5 --status   # with an admin key on this host. If it hangs too:"
            " a firewall (ports 3300, 6789), or mon_host of the ceph.conf"
        )
    return (
        f"ceph auth get-or-create {name} mon '{MON_CAPS}' mgr '{MGR_CAPS}'"
        " -o KEYRING   # then --cluster.conf, --cluster.name and --cluster.keyring"
    )


def _too_narrow(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.denied:
        yield Finding(
            facts.name,
            f"caps that the role cluster needs are missing: {', '.join(facts.denied)}",
            set_caps(facts.name),
        )


def _too_wide(facts: ClusterFacts) -> Iterator[Finding]:
    if not facts.powers:
        return
    if facts.name == "client.admin":
        mend = (
            f"ceph auth get-or-create client.cephqos mon '{MON_CAPS}' mgr '{MGR_CAPS}'"
            "   # a key of its own for the exporter"
        )
    else:
        mend = set_caps(facts.name)
    powers = ", ".join(facts.powers)
    problem = f"the key can do what the role cluster never needs: {powers}"
    yield Finding(facts.name, problem, mend)


def _manager_silent(facts: ClusterFacts) -> str:
    """Why missing caps are not known. Those that were found are reported all the same."""
    return "the manager does not answer" if facts.unanswered and not facts.denied else ""


def _powers_unknown(facts: ClusterFacts) -> str:
    """Why powers are not known. Those that were found are reported all the same."""
    if facts.powers:
        return ""
    if not facts.powers_tried:
        return "needs --try-powers"
    if facts.failure:
        return "the connection was lost"
    return f"whether the key can {' or '.join(facts.unasked)}" if facts.unasked else ""


# Says why there is no connection. Without one, all other checks are left out.
REACHABLE: Final = Check("cluster-reachable", _unreachable)
CHECKS: Final = (
    Check("caps-sufficient", _too_narrow, _manager_silent),
    Check("caps-minimal", _too_wide, _powers_unknown),
)
