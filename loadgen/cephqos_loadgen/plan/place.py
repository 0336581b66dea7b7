"""Where the programs of a run find the cluster and put their sockets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgramPaths:
    """Paths as the programs see them, which run in the lab's tree or on this host."""

    conf: str = "/etc/ceph/ceph.conf"
    user: str = "admin"  # without `client.`
    keyring: str | None = None
    work: str = "/run/cephqos"  # the folder for sockets

    @property
    def environment(self) -> dict[str, str]:
        """fio's engines and QEMU take their configuration from here."""
        environment = {"CEPH_CONF": self.conf}
        if self.keyring:
            environment["CEPH_ARGS"] = f"--keyring {self.keyring}"
        return environment

    @property
    def identity(self) -> tuple[str, ...]:
        """The options that Ceph's own commands take."""
        keyring = ("--keyring", self.keyring) if self.keyring else ()
        return ("--conf", self.conf, "--name", f"client.{self.user}", *keyring)


def whole_seconds(seconds: float) -> int:
    """The time that clients are given: rados bench takes whole seconds only, at least one."""
    return max(1, round(seconds))


def pinned(cpus: tuple[int, ...]) -> tuple[str, ...]:
    """The words before a command that keep it and its threads on these CPUs."""
    return ("taskset", "--cpu-list", ",".join(map(str, cpus))) if cpus else ()
