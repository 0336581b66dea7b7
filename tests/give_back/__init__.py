"""Runs that are killed, and clusters that are given back: `make give-back`."""
