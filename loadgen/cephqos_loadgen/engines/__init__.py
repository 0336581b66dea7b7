"""The programs that make load: their command lines, and what their outputs say.

Each engine of fio is one file with all that is its own: which option names its target, which
programs and kernel modules it needs, and what must be started before fio. `fio_engines` lists them.
"""
