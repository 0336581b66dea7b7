#!/bin/sh
/usr/lib/cephqos/python -m compileall -qq /usr/lib/cephqos/top || true
