"""Reads an archive as on a machine that has no Ceph: no program, no module, no tree, no cluster."""

import subprocess
import sys
from pathlib import Path

# Whatever would need more than the archive itself is refused, from the first import on.
_GUARD = """
import runpy, sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "socket.connect"):
        raise SystemExit(f"not without Ceph: {event} {arguments}")
    if event == "import" and arguments[0] in ("rados", "rbd", "cephfs"):
        raise SystemExit(f"not without Ceph: import {arguments[0]}")
    folders = ("/etc/ceph", "/var/lib/ceph", "/run/ceph")
    if event == "open" and str(arguments[0]).startswith(folders):
        raise SystemExit(f"not without Ceph: {arguments[0]}")
sys.addaudithook(refuse)
sys.argv = ["cephqos", *sys.argv[1:]]
runpy.run_module("cephqos_base", run_name="__main__")
"""


def cephqos(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """The command, with an empty PATH, no cache of trees, and no labs."""
    nothing = home / "nothing"
    environment = {
        "PATH": str(nothing),
        "HOME": str(nothing),
        "CEPHQOS_CACHE": str(nothing),
        "CEPHQOS_LABS": str(nothing),
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-c", _GUARD, *argv]
    return subprocess.run(
        command, env=environment, cwd=home, capture_output=True, text=True, timeout=300, check=False
    )


def read_everything(archive: Path, home: Path) -> str:
    """Verify, show and export it; what `show` prints. AssertionError where one fails."""
    verified = cephqos(home, "archive", "verify", str(archive))
    assert (verified.returncode, verified.stdout) == (0, f"{archive}: sound\n"), verified.stderr
    shown = cephqos(home, "archive", "show", str(archive))
    assert shown.returncode == 0, shown.stderr
    for form in ("csv", "openmetrics"):
        to = home / form
        made = cephqos(home, "archive", "export", str(archive), "--to", str(to), "--format", form)
        assert made.returncode == 0, made.stderr
        assert all(Path(line).stat().st_size for line in made.stdout.split())
    return shown.stdout
