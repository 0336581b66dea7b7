"""All PromQL of the dashboards, one module per dashboard.

Variables are Grafana's. `$detail` is the cluster, or nothing where it has so many OSDs that they
cannot be read one by one: selectors with it then match nothing, and their panels say why.
"""
