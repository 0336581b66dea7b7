"""Shows a running run: its state, as rows for a terminal, as metrics for Prometheus, as
annotations for Grafana and lines for Loki. Nothing here changes a cluster or an archive.
"""
