"""Faults staged on real clusters, and what the alerts say of them: `make truth`."""
