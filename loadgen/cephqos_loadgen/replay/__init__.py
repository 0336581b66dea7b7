"""Replay: what runs have recorded, in Prometheus again.

`series`, `run_series`, `openmetrics` and `layers` are pure; `blocks` and `serve` run promtool,
Prometheus and Grafana; `cli` is the command.
"""
