"""The Ceph releases that the lab can run, and where they come from."""

from dataclasses import dataclass

from cephqos_base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Release:
    """A Ceph release as one Debian suite packages it."""

    name: str
    version: str
    suite: str
    # The name of debootstrap's script: an old debootstrap does not know a new suite, but all suites
    # of Debian are made by the same script.
    script: str
    filestore: bool = False
    storage_daemon: bool = True  # whether the suite's qemu-utils has qemu-storage-daemon
    # 20.2.4 accepts only this kind (mon_auth_allow_insecure_key), and earlier ones only the older.
    aes256_keys: bool = False


RELEASES = {
    release.name: release
    for release in (
        Release("pacific", "16.2", "bookworm", "bookworm", filestore=True, storage_daemon=False),
        Release("reef", "18.2", "trixie", "sid"),
        Release("tentacle", "20.2", "forky", "sid", aes256_keys=True),
    )
}


def find_release(name: str) -> Release:
    """The release of that name (or version, 18.2), or a UsageError that lists what there is."""
    for release in RELEASES.values():
        if name in (release.name, release.version):
            return release
    known = ", ".join(f"{r.name} ({r.version})" for r in RELEASES.values())
    raise UsageError(f"unknown release {name!r}: the lab has {known}")
