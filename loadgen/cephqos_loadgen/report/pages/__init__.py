"""A document written down: one HTML page with its script, Markdown, CSV and SVG files."""
