"""Writes a document into a folder."""

from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_loadgen.report.charts.svg import standalone
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.pages.markdown import to_csv, to_markdown
from cephqos_loadgen.report.pages.page import to_html

PAGE, TEXT = "report.html", "report.md"


def write(document: Document, folder: Path) -> list[Path]:
    """report.html, report.md, tables/*.csv, charts/*.svg with the data of each beside it."""
    files = {PAGE: to_html(document), TEXT: to_markdown(document)}
    files |= {f"tables/{table.name}.csv": to_csv(table) for table in document.tables}
    for chart in document.charts:
        files[f"charts/{chart.name}.svg"] = standalone(chart.svg)
        files[f"charts/{chart.name}.csv"] = to_csv(chart.data)
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from None
    return [folder / name for name in files]
