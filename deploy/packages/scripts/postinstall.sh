#!/bin/sh
set -e
systemd-sysusers cephqos.conf
systemd-tmpfiles --create cephqos.conf || true # in a container without /proc it complains
python3 -m compileall -q /usr/lib/cephqos || true
if [ -d /run/systemd/system ]; then
    # An upgrade: what runs goes on with the new version. Nothing is started that did not run.
    { systemctl daemon-reload && systemctl try-restart cephqos-exporter.service cephqos-cluster.service cephqos-probe.service; } ||
        echo "cephqos: a service did not start again: systemctl status 'cephqos-*'" >&2
fi
