"""Replay: what runs have recorded, in Prometheus again.

`run_series` and `layers` are pure; `blocks` and `serve` run promtool, Prometheus and Grafana; `cli`
is the command.
"""
