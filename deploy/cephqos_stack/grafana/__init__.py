"""A Grafana that shows our dashboards for as long as something runs.

`find` says which Grafana there is, `own` starts one, `other` uses one that runs.
"""
