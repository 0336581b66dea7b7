#!/bin/sh
set -e
systemd-sysusers cephqos.conf
systemd-tmpfiles --create cephqos.conf || true # in a container without /proc it complains
# The unit cannot write there. This says too if there is no Python.
/usr/lib/cephqos/python -c 'import compileall, sys
for name in ("lib", "python%d.%d" % sys.version_info[:2]):
    compileall.compile_dir("/usr/lib/cephqos/" + name, quiet=2)' || true
if [ -d /run/systemd/system ]; then
    # An upgrade: what runs goes on with the new version. Nothing is started that did not run.
    { systemctl daemon-reload && systemctl try-restart cephqos-exporter.service cephqos-cluster.service cephqos-probe.service; } ||
        echo "cephqos: a service did not start again: systemctl status 'cephqos-*'" >&2
fi
