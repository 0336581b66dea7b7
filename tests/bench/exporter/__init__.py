"""What the exporter costs: printed with its ratios, in one go.

    make bench-exporter                  everything, with a cluster of 4 OSDs brought up for it
    python -m tests.bench.exporter --no-real    without a cluster
    python -m tests.bench.exporter --quick      fewer scrapes
    python -m tests.bench.exporter --minutes 5  fewer scrapes where time is short (10)

The exporter is the real command in a process of its own, asked over HTTP as Prometheus asks it
(gzip, OpenMetrics); the replayed daemons are another process. CPU is user + system of the exporter,
taken in batches. A bar that only some of the batches keep is too noisy to judge: other work runs on
the machine. So is one that is missed while the exporter waited for a CPU for a quarter of its time:
caches are cold then, and CPU time doubles. A part that fails does not keep others from running.

Exit status: 0 if all bars are kept, 1 if one is missed or a part failed, 3 if one is too noisy.
"""
