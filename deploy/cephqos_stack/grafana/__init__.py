"""A Grafana that shows our dashboards for as long as something runs.

`find` says which Grafana there is, and `own` starts it.
"""
