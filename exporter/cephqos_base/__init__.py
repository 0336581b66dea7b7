"""What every other package of cephqos needs. The lowest floor: it imports none of them.

errors      errors for users: one line and an exit status
entry       where both commands begin: Ctrl-C while modules are loaded
command     the `cephqos` command: the table of its commands, Ctrl-C, exit status
terminal    text for a terminal, made harmless
yamlfile    the one YAML reader: every value knows its file, line and key
textfile    text files that commands write and compare
answers     what servers answer, within bounds
urls        what of a URL may be shown
units       sizes, durations, CPU lists
bounds      histogram buckets of latencies
judge       whether a reservation is violated, where no rules run
thresholds  from where on a figure is a finding
version     the version of all packages
series      names and label sets of our series, classes of work, causes
recorded    names of the series that our rules record
dashboards  uids of our Grafana dashboards
"""
