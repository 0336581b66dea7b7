"""Makes the chart as one file, with rules and dashboards in place of links: `make chart`.

Helm can do that too, but writes the time into the file. Here the same sources give the same bytes.
"""

import sys
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "cephqos"
sys.path.insert(0, str(ROOT / "deploy" / "release"))
from pack import pack  # noqa: E402


def package(out: Path) -> Path:
    """The chart in that folder."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    name = about["name"]
    parts = {name: CHART, f"{name}/LICENSE": ROOT / "LICENSE"}
    out.mkdir(parents=True, exist_ok=True)
    return pack(out / f"{name}-{about['version']}.tgz", parts, 0)


if __name__ == "__main__":
    print(package(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "dist"))
