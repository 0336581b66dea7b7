"""Tables of a report, as data: `table` is what one consists of, `every` is their order.

Of the loads and of background work, of changes against a reference or a baseline, of reservations
and causes, of the setup: cost, recording, environment.
"""
