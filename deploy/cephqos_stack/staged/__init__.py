"""Situations that are staged on a lab: loads, faults, and what the alerts have to say of them.

The demo provokes them, and `make truth` judges them.
"""
