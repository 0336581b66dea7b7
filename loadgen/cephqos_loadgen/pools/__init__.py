"""The pools of a run: created, filled, kept for the next run or removed, and whether they fit into
the cluster.
"""
