"""Charts of a report; `every` is their order.

What is drawn: `trade`, `of_points`, `surface`, `over_time`. How: `plots`, `plot_surface` and
`plot_time`, made of pieces of `svg`.
"""
