"""Charts of a report, each with the table of what it draws; `every` is their order.

What is drawn: `trade`, `of_points`, `over_time`, `surface`, `core_map`. How it is drawn: `plots`,
`plot_time`, `plot_surface`, made of pieces of `svg`.
"""
