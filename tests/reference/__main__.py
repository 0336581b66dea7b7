"""`python -m tests.reference`: write docs/reference, the chart's README, repeated figures, and the
list of causes in docs/internals/rules.md."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.reference import figures, files, helm, metrics, options, releases, rules

FOLDER: Final = Path("docs/reference")
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "metrics.md": metrics.metrics,
    "recorded.md": rules.recorded,
    "alerts.md": rules.alerts,
    "commands.md": options.commands,
    "exporter.md": options.exporter,
    "files.md": files.files,
    "helm.md": helm.chart_values,
    "releases.md": releases.by_release,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    helm.README.write_text(helm.readme(), encoding="utf-8")
    figures.write()
    rules.RULES_PAGE.write_text(rules.rules_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
