"""Looked at before anything is changed: options, files, this host's programs, memory and disk, and
the plan as text (`--check`, `--dry-run`). What is wrong is one line, and nothing is left behind.
"""
