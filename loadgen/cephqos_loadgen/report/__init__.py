"""Analysis of archives, reports and comparisons.

`observe` turns one repeat into figures and series, `analysis` puts repeats together per point,
`doubts` says what speaks against the figures. All of it is pure once the archive is read. `tables`
and `charts` describe what is shown; `markdown`, `page` and `csv_files` write it.
"""
