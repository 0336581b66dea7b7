"""The cephqos exporter: what an OSD can tell about QoS, as Prometheus metrics."""
