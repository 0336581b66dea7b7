"""The page at /: what this is, and links."""

from collections.abc import Sequence
from html import escape

from cephqos_base.version import __version__
from cephqos_exporter.daemon import Daemon

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>cephqos exporter</title>
<style>body {{ font-family: sans-serif; margin: 2em; max-width: 50em }}
td, th {{ text-align: left; padding-right: 2em }}</style></head>
<body>
<h1>cephqos exporter</h1>
<p>Version {version}. Shows reservations and work of the OSDs of this host.</p>
<ul>
<li><a href="{metrics}">Metrics</a></li>
<li><a href="/sd">Targets for Prometheus' HTTP service discovery</a></li>
<li><a href="/-/healthy">Healthy?</a> <a href="/-/ready">Ready?</a></li>
</ul>
{daemons}
</body>
</html>
"""


def landing_page(metrics_path: str, daemons: Sequence[Daemon]) -> str:
    """HTML with links and the daemons that the last scrape saw."""
    rows = "".join(
        f"<tr><td>{escape(d.name)}</td><td>{escape(d.cluster)}</td>"
        f"<td>{escape(str(d.socket))}</td></tr>\n"
        for d in daemons
    )
    table = (
        f"<table><tr><th>Daemon</th><th>Cluster</th><th>Socket</th></tr>\n{rows}</table>"
        if rows
        else "<p>No daemons were seen by a scrape yet.</p>"
    )
    return _PAGE.format(
        version=escape(__version__), metrics=escape(metrics_path, quote=True), daemons=table
    )
