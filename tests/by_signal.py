"""Long suites that are ended by signal end and remove what they began."""

import signal
import sys


def clean_up_when_ended() -> None:
    """For SIGTERM and SIGHUP, what Python does for Ctrl-C: blocks are left, one after the other.
    A shell lets what it starts in the background ignore Ctrl-C, and its children too: not here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
