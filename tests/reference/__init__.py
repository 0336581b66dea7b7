"""The reference part of the documentation, made from the code.

`python -m tests.reference` writes docs/reference; a test compares it with what is committed.
"""
