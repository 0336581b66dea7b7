"""Recording rules, alerts and SLOs of cephqos, generated: pure functions from settings to rules."""
