"""Analysis of archives, reports and comparisons: what a run says, and what speaks against it.

Rooms, each may use those before it: `arrays` (what was recorded), `figures` (from an archive to
numbers), `caveats` (what speaks against them), `tables` and `charts` (what is shown). Then `pages`
(HTML, Markdown, CSV, SVG) and `compare` (runs against each other). `subject` is what they all talk
about: the rows of a report and their names; `words` is how numbers read. `build` puts a `document`
together; `cli` is `cephqos report`.
"""
