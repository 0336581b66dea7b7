"""`cephqos top`: reservations of a cluster, live in a terminal.

Data flows one way, and only the two ends do I/O:

sources     fetch samples from Prometheus or from exporters
figures     which series are read: one table, for PromQL and for own rates
build       samples -> picture (`picture`), with OSDs (`osd_states`) and gaps (`missing`)
screen      picture -> lines of text on a terminal, keys -> sort, filter, opened OSD
watch       the loop between source and screen; `cli` prints once, or JSON
"""
