"""All that a release consists of, from what is committed, into dist/release: `make release`.

The same commit gives the same bytes: `--again` builds twice and compares. If the tools, the
environment and the wheels are there, only a Docker engine fetches something, for images. Nothing is
published.
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))
import docker_images
from pack import pack, repack
from stamp import NotStamped, hosting, stamp
from versions import ROOT, disagreements, notes, version

import sbom
from cephqos_base import marked
from cephqos_base.errors import UsageError

_SECONDS: Final = 1800
_SUMS: Final = "SHA256SUMS"
_BACKEND: Final = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"
_EXPORTER: Final = ROOT / "deploy/images/requirements-exporter.txt"
_ARCHIVES: Final = {  # folders of the repository, by archive and by name in it
    "rules": {"rules": "alerts/rules", "alertmanager": "alerts/alertmanager"},
    "dashboards": {
        "dashboards": "dashboards/cephqos_dashboards/generated",
        "provisioning": "dashboards/cephqos_dashboards/provisioning_files",
    },
    # What pages name below deploy/, where they say that it is: with the images of the release.
    "deploy": {
        path: path
        for path in (
            *("deploy/cephadm", "deploy/compose", "deploy/collector", "deploy/loki"),
            *("deploy/prometheus", "deploy/scale", "deploy/helm/values"),
            *("alerts/rules", "alerts/alertmanager", "alerts/loki"),
            "dashboards/cephqos_dashboards/generated",
            "dashboards/cephqos_dashboards/provisioning_files",
        )
    },
}
_TOP: Final = _EXPORTER.with_name("requirements-lab.txt")


class NotReleased(Exception):
    """No release can be made. The message says why."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The committed files, in a folder of their own."""

    folder: Path
    version: str
    moment: int  # of the commit, Unix seconds

    def run(self, *words: str | Path) -> None:
        """Run a command in the folder. Its output is shown only if it fails."""
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(self.moment)},
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        if done.returncode:
            output = (done.stdout + done.stderr)[-2000:]
            raise NotReleased(f"{' '.join(map(str, words))} failed:\n{output}")


def _git(*words: str) -> bytes:
    argv = ["git", "-c", "tar.umask=0022", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout


def export(folder: Path, owner: str) -> Sources:
    """The committed files, with the names of who publishes them and the time of the commit."""
    if changed := _git("status", "--porcelain").decode():
        raise NotReleased(f"the checkout has changes: commit them first\n{changed}")
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "HEAD"))) as archive:
        archive.extractall(folder, filter="tar")
    try:
        stamp(folder, hosting(folder, owner), version(folder))
    except NotStamped as error:
        raise NotReleased(str(error)) from None
    return Sources(folder, version(folder), int(_git("show", "-s", "--format=%ct", "HEAD")))


def build(sources: Sources, out: Path, cyclonedx: Path) -> None:
    """Build everything but images, each file with its bill."""
    python_distributions(sources, out)
    sources.run(sys.executable, "-P", "deploy/packages/build.py", out)
    chart(sources, out)
    site(sources, out)
    for what, folders in _ARCHIVES.items():
        name = _named(what, sources)
        parts = {f"{name}/{inside}": sources.folder / path for inside, path in folders.items()}
        pack(out / f"{name}.tar.gz", parts, sources.moment)
    bills(sources, out, cyclonedx)
    (out / "notes.md").write_text(notes(sources.folder), encoding="utf-8")


def _named(what: str, sources: Sources) -> str:
    return f"cephqos-{what}-{sources.version}"


def python_distributions(sources: Sources, out: Path) -> None:
    for what in ("sdist", "wheel"):
        sources.run(sys.executable, "-P", "-W", "ignore", "-c", _BACKEND.format(what), out)
    [sdist] = out.glob("cephqos-*.tar.gz")
    repack(sdist, sources.moment)


def chart(sources: Sources, out: Path) -> None:
    sources.run(sys.executable, "-P", "deploy/helm/package.py", out)
    made = out / f"cephqos-{sources.version}.tgz"
    made.rename(out / f"{_named('chart', sources)}.tgz")


def site(sources: Sources, out: Path) -> None:
    """The documentation, to be opened from a folder or put on a server."""
    sources.run(Path(sys.prefix) / "bin/zensical", "build", "--clean", "--strict")
    name = _named("docs", sources)
    pack(out / f"{name}.tar.gz", {name: sources.folder / "build/site"}, sources.moment)


def bills(sources: Sources, out: Path, cyclonedx: Path) -> None:
    """The bill of each file in `out`, and the licences of all components."""
    with tempfile.TemporaryDirectory() as name:
        python = sbom.python_bill(cyclonedx, Path(name) / "python")
        collector = sbom.go_bill("collector", Path(name) / "collector")
    exporter = sbom.among(python, sbom.locked(_EXPORTER))
    top = sbom.among(python, sbom.locked(_TOP))
    for file in sorted(out.iterdir()):
        if file.name.startswith("cephqos-collector"):
            components = list(collector["components"])
        elif file.name.startswith("cephqos-top"):
            components = top
        elif file.suffix in (".whl", ".deb", ".rpm") or file.name == f"cephqos-{version()}.tar.gz":
            components = exporter
        else:
            components = []
        write_bill(file, sources.version, components)
    every: dict[str, sbom.Bill] = {"exporter": {"components": exporter}, "collector": collector}
    every["top"] = {"components": top}
    (out / "licences.md").write_text(sbom.licences(every), encoding="utf-8")


def write_bill(file: Path, version_: str, components: Sequence[sbom.Bill]) -> None:
    bill = sbom.bill_of(file.name, version_, _sum(file), components)
    text = json.dumps(bill, indent=1, sort_keys=True) + "\n"
    file.with_name(f"{file.name}.cdx.json").write_text(text, encoding="utf-8")


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sums(out: Path) -> dict[str, str]:
    return {file.name: _sum(file) for file in sorted(out.iterdir()) if file.name != _SUMS}


def write_sums(out: Path) -> None:
    """As `sha256sum --check` reads them."""
    lines = [f"{checksum}  {name}\n" for name, checksum in sums(out).items()]
    (out / _SUMS).write_text("".join(lines), encoding="utf-8")


def different_files(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The files that are not the same in both builds."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def _build_again(first: Mapping[str, str], cyclonedx: Path, owner: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out"
        out.mkdir()
        build(export(Path(name) / "sources", owner), out, cyclonedx)
        if different := different_files(first, sums(out)):
            raise NotReleased(f"built twice, not the same bytes: {', '.join(different)}")
    print(f"built twice: {len(first)} files, the same bytes")


def release(out: Path, tag: str, cyclonedx: Path, *, owner: str = "", again: bool) -> None:
    if wrong := disagreements(tag=tag):
        raise NotReleased("\n".join(wrong))
    try:
        marked.renew(out, "release")
    except UsageError as error:
        raise NotReleased(str(error)) from None
    with tempfile.TemporaryDirectory() as name:
        new = Path(name) / "out"
        new.mkdir()
        sources = export(Path(name) / "sources", owner)
        build(sources, new, cyclonedx)
        if again:
            _build_again(sums(new), cyclonedx, owner)
        # Images are last, and not compared: no image has the same bytes twice.
        for file, components in docker_images.archives(sources.folder, new, sources.version):
            write_bill(file, sources.version, components)
        write_sums(new)
        for file in sorted(new.iterdir()):
            print(f"{file.stat().st_size / 1024:8.0f} KiB  {file.name}")
            shutil.move(file, out / file.name)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist/release", help="folder to fill")
    parser.add_argument("--tag", default="", help="tag that this is to be released as")
    parser.add_argument("--owner", default="", help="who publishes it, if not as hosting.env says")
    parser.add_argument("--again", action="store_true", help="build twice and compare")
    parser.add_argument("cyclonedx", type=Path, help="cyclonedx-py, which writes the bills")
    given = parser.parse_args(arguments)
    try:
        release(
            given.out,
            given.tag,
            given.cyclonedx.absolute(),
            owner=given.owner,
            again=given.again,
        )
    except (NotReleased, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
