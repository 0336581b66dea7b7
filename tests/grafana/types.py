"""Checks the dashboards against the types that Grafana publishes: `make test-grafana-types`.

The npm package @grafana/schema has no JSON schema, only TypeScript. So each panel, its options,
each variable and each dashboard becomes a constant of its type, and tsc says what does not fit.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.board_panels import boards

SCHEMA: Final = "@grafana/schema@13.2.3"
TYPESCRIPT: Final = "typescript@5.9.3"
# Keys that Grafana's SDK writes for 10.4, and that newer types lack: they are not looked at.
OLD: Final = frozenset(("auto", "auto_min", "auto_count", "footer"))
_TYPES: Final = "./node_modules/@grafana/schema/dist/types/raw"
# As JSON writes it: the values of an enum are texts, and options may be left out.
_HELPERS: Final = """
type Json<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Part<T> = T extends (infer U)[] ? Part<U>[]
  : T extends object ? { [K in keyof T]?: Part<T[K]> } : T;
"""


def _constants(board: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Types, and what must fit them."""
    panels = [one for panel in board["panels"] for one in (panel, *panel.get("panels", ()))]
    for panel in panels:
        if panel["type"] == "row":
            yield "Json<RowPanel>", panel | {"panels": []}
            continue
        module = _module(panel["type"])
        yield "Json<Panel>", panel
        yield f"Part<Json<{module}.Options>>", _without_old(panel.get("options", {}))
        if custom := panel.get("fieldConfig", {}).get("defaults", {}).get("custom"):
            yield f"Part<Json<{module}.FieldConfig>>", custom
    for variable in board["templating"]["list"]:
        yield "Json<VariableModel>", _without_old(variable)
    whole = {key: value for key, value in board.items() if key != "__requires"}
    yield "Json<Dashboard>", whole | {"panels": [], "templating": {}, "annotations": {}}


def _without_old(value: dict[str, Any]) -> dict[str, Any]:
    return {key: it for key, it in value.items() if key not in OLD}


def _module(panel_type: str) -> str:
    return panel_type.replace("-", "").lower()


def source() -> str:
    names = "Dashboard, Panel, RowPanel, VariableModel"
    modules: set[str] = set()
    lines: list[str] = []
    for uid, board in sorted(boards().items()):
        for kind, value in _constants(board):
            modules.update(re.findall(r"(\w+)\.(?:Options|FieldConfig)", kind))
            text = json.dumps(value)
            lines.append(f"export const c{len(lines)}: {kind} = {text}; // {uid}")
    imports = [f'import type {{ {names} }} from "{_TYPES}/dashboard/x/types.gen";']
    imports += [
        f'import type * as {it} from "{_TYPES}/composable/{it}/panelcfg/x/types.gen";'
        for it in sorted(modules)
    ]
    return "\n".join([*imports, _HELPERS, *lines]) + "\n"


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", SCHEMA, TYPESCRIPT]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    text = source()
    (folder / "boards.ts").write_text(text)
    options = ["--strict", "--noEmit", "--skipLibCheck", "--module", "esnext"]
    tsc = ["node", "node_modules/typescript/bin/tsc", *options, "--moduleResolution", "bundler"]
    done = subprocess.run(
        [*tsc, "boards.ts"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    print(done.stdout[:4000], end="")
    fit = "fit" if done.returncode == 0 else "do not all fit"
    print(f"{text.count('export const')} parts of dashboards {fit} the types of {SCHEMA}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(Path("build/grafana-types")))
