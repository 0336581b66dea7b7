"""The kinds of phases, one file each. A file holds everything about its kind: what a scenario may
say and how it is checked, what it needs, how long it takes, how a plan shows it, how it is carried
out, and its result.
"""
