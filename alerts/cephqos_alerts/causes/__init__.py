"""Causes of unmet demand: one file per cause, each with its own evidence.

Each is a recording rule. Several can hold at once. All are recorded, and the most urgent one leads
(`leading.py`). Names, words, ranks and colours are in cephqos_base/causes.py, since dashboards need
them too. To add a cause: a line there, a file here, an entry of `EVERY`, and
`pytest tests/unit/alerts/test_causes.py --regenerate` for the table of docs/internals/rules.md.
"""
