"""`cephqos doctor`: what is missing or wrong on a host, in a cluster or in a Prometheus."""
