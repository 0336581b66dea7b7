#!/bin/sh
# RPM calls this for the old version after the new one is there and compiled: that is to stay.
[ "$1" = 1 ] || find /usr/lib/cephqos/top -name __pycache__ -type d -prune -exec rm -rf {} +
