"""Writes a document into a folder."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_loadgen.report.charts.svg import standalone
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.pages.markdown import to_csv, to_markdown
from cephqos_loadgen.report.pages.page import to_html
from cephqos_loadgen.run_recording.regular import place_inside, read_regular

PAGE, TEXT = "report.html", "report.md"
WRITTEN = ".written"  # the names of all files of the report


def write(document: Document, folder: Path) -> list[Path]:
    """report.html, report.md, tables/*.csv, charts/*.svg and *.csv."""
    files = {PAGE: to_html(document), TEXT: to_markdown(document)}
    files |= {f"tables/{table.name}.csv": to_csv(table) for table in document.tables}
    if document.samples:
        files[f"tables/{document.samples.name}.csv"] = to_csv(document.samples)
    for chart in document.charts:
        files[f"charts/{chart.name}.svg"] = standalone(chart.svg)
        if chart.data:
            files[f"charts/{chart.name}.csv"] = to_csv(chart.data)
    files[WRITTEN] = "\n".join(files)
    try:
        _remove_earlier(folder, files)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from None
    return [folder / name for name in files]


def _remove_earlier(folder: Path, files: Collection[str]) -> None:
    """What an earlier report has written into the same folder, and this one does not have."""
    names: list[str] = []
    with suppress(OSError, ValueError):
        names = read_regular(folder / WRITTEN).decode().splitlines()
    for name in set(names).difference(files):
        place = place_inside(folder, name)
        if place is not None and place.parent.name in ("tables", "charts"):
            place.unlink(missing_ok=True)
