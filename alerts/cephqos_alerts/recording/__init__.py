"""Recording rules: reservation, attained work and demand of each class, and what its OSD does.

In the order in which Prometheus needs them: reservations and work, demand, comparisons across OSDs,
what has failed on an OSD itself, sums. Why a class gets no more is in `causes`."""
