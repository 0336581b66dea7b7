"""Charts of a report; `every` is their order.

What is drawn: `trade`, `of_points`, `surface`, and `over_time` with the numbers of `tracks`. How:
`plots`, `plot_surface` and `plot_time`, made of pieces of `svg`.
"""
