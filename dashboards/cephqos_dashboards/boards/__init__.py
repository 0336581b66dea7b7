"""One file per dashboard."""
