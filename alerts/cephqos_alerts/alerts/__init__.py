"""Alerts, by what they are about: reservations (qos), configuration, the state of OSDs, what is not
seen (coverage, blind), log lines (for Loki)."""
