"""Writes into a copy of the sources who publishes a release: registry and owner.

The repository has no owner yet: pages write `ghcr.io/OWNER/…:VERSION`, and metadata has no
address. A chart, a specification or a page of a release names what can be pulled.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOSTING: Final = ".github/hosting.env"
_IMAGES: Final = ("exporter", "collector", "loki")  # those that are published
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")
_REGISTRY: Final = re.compile(r"[a-z0-9][a-z0-9.:/-]*")
# What pages say only as long as there is no release.
_UNTIL_PUBLISHED: Final = re.compile(
    r"^<!-- until published -->\n.*?^<!-- published -->\n+", re.DOTALL | re.MULTILINE
)

_URLS: Final = """
[project.urls]
Homepage = "https://github.com/OWNER/cephqos"
Documentation = "https://OWNER.github.io/cephqos/"
Issues = "https://github.com/OWNER/cephqos/issues"
Changelog = "https://github.com/OWNER/cephqos/blob/main/CHANGELOG.md"
"""
# The last key of Chart.yaml is `annotations`.
_CHART: Final = """\
  artifacthub.io/images: |
    - name: cephqos-exporter
      image: REGISTRY/OWNER/cephqos-exporter:VERSION
    - name: cephqos-collector
      image: REGISTRY/OWNER/cephqos-collector:VERSION
  artifacthub.io/links: |
    - name: documentation
      url: https://OWNER.github.io/cephqos/
    - name: support
      url: https://github.com/OWNER/cephqos/issues
home: https://OWNER.github.io/cephqos/
sources: ["https://github.com/OWNER/cephqos"]
maintainers:
  - name: cephqos
    url: https://github.com/OWNER/cephqos
"""


class NotStamped(Exception):
    """A name that cannot be, or a file that has no place for it. The message says which."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """Where a release is published. Without an owner: nowhere."""

    owner: str
    registry: str

    def image(self, name: str, version: str) -> str:
        return f"{self.registry}/{self.owner}/cephqos-{name}:{version}"


def hosting(root: Path, owner: str = "") -> Hosting:
    """As .github/hosting.env has it; an owner that is given comes first."""
    lines = (root / HOSTING).read_text(encoding="utf-8").splitlines()
    said = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z]+=", line))
    owner = owner or said["OWNER"]
    if owner and not _NAME.fullmatch(owner):
        raise NotStamped(f"OWNER: found {owner!r}, expected small letters, digits and -")
    if not _REGISTRY.fullmatch(said["REGISTRY"]):
        raise NotStamped(f"REGISTRY: found {said['REGISTRY']!r}, expected a host such as ghcr.io")
    return Hosting(owner, said["REGISTRY"])


def stamp(folder: Path, to: Hosting, version: str) -> None:
    """Write the names into chart, compose, cephadm's specifications and pages of the folder."""
    if not to.owner:
        return
    chart = folder / "deploy/helm/cephqos"
    for name in ("exporter", "collector"):
        _replace(
            chart / "values.yaml",
            rf'registry: "".*\n( +)repository: cephqos-{name}\b',
            rf"registry: {to.registry}\n\1repository: {to.owner}/cephqos-{name}",
        )
    for name in _IMAGES:
        variable = f"{name.upper()}_IMAGE"
        _replace(
            folder / "deploy/compose/common.yml",
            rf"\{{{variable}:-cephqos-{name}:local\}}",
            f"{{{variable}:-{to.image(name, version)}}}",
        )
    for file, name in (("exporter", "exporter"), ("cluster", "exporter"), ("collector",) * 2):
        path = folder / f"deploy/cephadm/{file}.yml"
        _replace(path, r"image: IMAGE\b", f"image: {to.image(name, version)}")
    address = f"cephqos <{to.owner}@users.noreply.github.com>"
    for path in sorted((folder / "deploy/packages").glob("nfpm*.yaml")):
        home = f"homepage: https://github.com/{to.owner}/cephqos"
        _replace(path, r"maintainer: cephqos <cephqos@localhost>", f"maintainer: {address}\n{home}")
    _append(folder / "pyproject.toml", _URLS, to, version)
    _append(chart / "Chart.yaml", _CHART, to, version)
    for path in (folder / "README.md", *(folder / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(
            r"ghcr\.io/OWNER/([\w/-]+):VERSION", rf"{to.registry}/{to.owner}/\1:{version}", text
        )
        text = re.sub(r"(--version |cephqos-deploy-)VERSION\b", rf"\g<1>{version}", text)
        text = text.replace("ghcr.io/OWNER", f"{to.registry}/{to.owner}")
        text = text.replace("OWNER.github.io", f"{to.owner}.github.io")
        text = _UNTIL_PUBLISHED.sub("", text)
        path.write_text(text, encoding="utf-8")
    _with_whole_links(folder / "README.md", to, version)


def _with_whole_links(page: Path, to: Hosting, version: str) -> None:
    """PyPI shows this page alone: its links and pictures have to say where the others are."""
    files = f"github.com/{to.owner}/cephqos/blob/v{version}"
    pictures = f"raw.githubusercontent.com/{to.owner}/cephqos/v{version}"
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>https://{pictures}/", text)
    text = re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>https://{files}/", text)
    page.write_text(text, encoding="utf-8")


def _append(path: Path, text: str, to: Hosting, version: str) -> None:
    for word, said in (("OWNER", to.owner), ("REGISTRY", to.registry), ("VERSION", version)):
        text = text.replace(word, said)
    path.write_text(path.read_text(encoding="utf-8").rstrip() + "\n" + text, encoding="utf-8")


def _replace(path: Path, pattern: str, new: str) -> None:
    text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"))
    if not count:
        raise NotStamped(f"{path.name}: found no {pattern}, which a release replaces")
    path.write_text(text, encoding="utf-8")
