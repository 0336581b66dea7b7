"""The keys of a lab whose daemons and clients prove who they are (`auth: cephx`)."""

import base64
import secrets
import struct
import time

from cephqos_loadgen.lab.paths import LabPaths

_AES = 1
_KEY_BYTES = 16

Caps = dict[str, str]

# What Ceph's own deployment tools give each kind of daemon, and its administrator.
_CAPS: dict[str, Caps] = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "mgr": "allow *", "osd": "allow *", "mds": "allow *"},
    "mgr": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "osd": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
}


def make_key(now: float | None = None) -> str:
    """A new key as Ceph writes it: type, time of making (s, ns), length, the secret itself."""
    seconds = int(time.time() if now is None else now)
    head = struct.pack("<HIIH", _AES, seconds, 0, _KEY_BYTES)
    return base64.b64encode(head + secrets.token_bytes(_KEY_BYTES)).decode()


def caps_of(entity: str) -> Caps:
    """What `mon.`, `client.admin`, `mgr.x` or `osd.0` may do."""
    return _CAPS.get(entity) or _CAPS[entity.partition(".")[0]]


def entry(entity: str, key: str) -> str:
    """The part of a keyring that is about one of them."""
    caps = "".join(f'\tcaps {kind} = "{text}"\n' for kind, text in caps_of(entity).items())
    return f"[{entity}]\n\tkey = {key}\n{caps}"


def write_keyrings(paths: LabPaths, daemons: list[str]) -> None:
    """A keyring for each daemon and the administrator, and the monitor's, which has all of them."""
    paths.keys.mkdir(mode=0o755)
    everyone = []
    for entity in ("client.admin", *daemons):
        everyone.append(entry(entity, make_key()))
        _write(paths, entity, everyone[-1])
    _write(paths, "mon.", entry("mon.", make_key()) + "".join(everyone))


def _write(paths: LabPaths, entity: str, text: str) -> None:
    file = paths.keyring(entity)
    file.touch(mode=0o600)
    file.write_text(text)
