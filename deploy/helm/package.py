"""Makes the chart as one file, with rules and dashboards in place of links: `make chart`.

Helm can do that too, but writes the time of day into it. The same sources give the same bytes here.
"""

import gzip
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "cephqos"


def files() -> Iterator[tuple[str, bytes]]:
    """Path below the chart and content of each file, in order; links are followed."""
    yield "LICENSE", (ROOT / "LICENSE").read_bytes()
    for path in sorted(_below(CHART)):
        yield str(path.relative_to(CHART)), path.read_bytes()


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _below(path)
        else:
            yield path


def package() -> tuple[str, bytes]:
    """Its name and its bytes."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files():
            entry = tarfile.TarInfo(f"{about['name']}/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return f"{about['name']}-{about['version']}.tgz", gzip.compress(packed.getvalue(), mtime=0)


def main(out: Path) -> None:
    name, content = package()
    out.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(content)
    print(out / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "dist")
