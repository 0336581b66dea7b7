"""Recording rules, alerts and SLOs of cephqos, generated: pure functions from settings to rules.

`cli` is the command. The rooms, lowest first, each importing only those before it: rules,
recording, causes, alerts, slo, output.
"""
