"""Charts of a report; `every` is their order.

What is drawn: `trade`, `of_points`, `over_time`. How it is drawn: `plots` and `plot_time`, made of
pieces of `svg`.
"""
