"""Recording rules: what each class was promised, gets and wants, and what its OSD does meanwhile.

In the order in which Prometheus needs them: promises and work, demand, comparisons across OSDs,
what has failed on an OSD itself, sums. Why a class gets no more is in `causes`."""
