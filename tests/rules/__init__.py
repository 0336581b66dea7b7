"""Tests of rules by promtool: made-up series, and what must fire when."""
