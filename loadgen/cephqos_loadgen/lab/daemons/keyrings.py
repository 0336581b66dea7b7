"""Keyrings of a lab with authentication (`auth: cephx`)."""

import base64
import secrets
import struct
import time

from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.releases import Release

# Ceph's number for a kind of key, and its length in bytes.
_AES128, _AES256 = (1, 16), (2, 32)

Caps = dict[str, str]

# What Ceph's own deployment tools give each kind of daemon, and its administrator.
_CAPS: dict[str, Caps] = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "mgr": "allow *", "osd": "allow *", "mds": "allow *"},
    "mgr": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "osd": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
}


def make_key(release: Release) -> str:
    """A new key in Ceph's encoding: kind, creation time (s, ns), length, secret."""
    kind, length = _AES256 if release.aes256_keys else _AES128
    head = struct.pack("<HIIH", kind, int(time.time()), 0, length)
    return base64.b64encode(head + secrets.token_bytes(length)).decode()


def caps_of(entity: str) -> Caps:
    """The capabilities of `mon.`, `client.admin`, `mgr.x` or `osd.0`."""
    return _CAPS.get(entity) or _CAPS[entity.partition(".")[0]]


def keyring_section(entity: str, key: str) -> str:
    """The section of one entity in a keyring."""
    caps = "".join(f'\tcaps {kind} = "{text}"\n' for kind, text in caps_of(entity).items())
    return f"[{entity}]\n\tkey = {key}\n{caps}"


def write_keyrings(paths: LabPaths, release: Release, daemons: list[str]) -> None:
    """A keyring for each daemon and the administrator. The monitor's has all of them."""
    paths.keys.mkdir(mode=0o755)
    sections = []
    for entity in ("client.admin", *daemons):
        sections.append(keyring_section(entity, make_key(release)))
        _write(paths, entity, sections[-1])
    _write(paths, "mon.", keyring_section("mon.", make_key(release)) + "".join(sections))


def _write(paths: LabPaths, entity: str, text: str) -> None:
    file = paths.keyring(entity)
    file.touch(mode=0o600)
    file.write_text(text)
