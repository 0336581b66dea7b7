#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    # An upgrade: what runs goes on with the new version. Nothing is started that did not run.
    { systemctl daemon-reload && systemctl try-restart cephqos-collector.service; } ||
        echo "cephqos: a service did not start again: systemctl status 'cephqos-*'" >&2
fi
