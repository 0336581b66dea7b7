"""What every other package of cephqos needs. The lowest floor: it imports none of them.

errors    errors for users: one line and an exit status
command   the `cephqos` command: the table of its commands, Ctrl-C, exit status
yamlfile  the one YAML reader: every value knows its file, line and key
units     sizes, durations, CPU lists
bounds    histogram buckets of latencies
version   the version of all packages
series    names and label sets of our series, classes of work, causes
recorded  names of the series that our rules record
"""
