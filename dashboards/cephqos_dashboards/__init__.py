"""Grafana dashboards as code.

`boards` has one file per dashboard, `queries` all PromQL, `theme` every colour and unit. What they
give is committed in `generated` and `provisioning`, so that installing it needs no SDK.
"""
