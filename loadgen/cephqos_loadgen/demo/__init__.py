"""The demo: a real cluster under load, shown live, and one promise broken on purpose.

`cli` sets everything up, `story` breaks and mends the promise, `screen` shows the OSDs
(`osd_table`) and tells the story above them.
"""
