"""Scenarios: YAML in, a frozen plan out, before anything is touched."""
