"""How often trials on simulated load are right: `PYTHONPATH=. python -m tests.trial`."""
