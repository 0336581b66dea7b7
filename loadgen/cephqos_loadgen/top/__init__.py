"""`cephqos top`: the state of a cluster's QoS promises, live in a terminal.

Data flows one way, and only the two ends do I/O:

prometheus, exporters   sources: fetch samples
figures                 which series are read: one table, for PromQL and for own rates
build                   samples -> model (`model`), with what is missing and why (`missing`)
sections, layout        model and view (`view`: sort, filter, opened OSD) -> lines of text
app                     lines on a terminal, keys (Textual); `cli` prints them for --once and --json
"""
