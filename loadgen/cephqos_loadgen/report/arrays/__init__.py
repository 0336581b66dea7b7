"""What an archive recorded, as arrays, and arithmetic with them that knows nothing of Ceph.

`samples` reads the exporters' series, and `windows` moves a window over one. `intervals` is what
clients did each second, `bins` their latencies. `statistics` has the spread of figures and the
intervals of changes.
"""
