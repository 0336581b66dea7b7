"""Texts that alerts share, with what Prometheus looks up while an alert fires.

Sources name them as `@likely@`: every.py has the names."""
