"""Reads scenarios: from the text of a YAML file to a frozen plan. Whatever is wrong is said here,
with file, line and key. No I/O but reading the file.
"""
