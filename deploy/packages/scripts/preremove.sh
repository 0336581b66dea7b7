#!/bin/sh
set -e
# Debian says `remove`, RPM the number of versions that stay.
case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then
        # One that is masked, or a systemd that does not answer, does not keep the package installed.
        systemctl disable --now cephqos-exporter.service cephqos-cluster.service cephqos-probe.service ||
            echo "cephqos: a service did not end: systemctl status 'cephqos-*'" >&2
    elif command -v systemctl >/dev/null; then
        # In an image that is being built: installed again, nothing is to start at boot either.
        systemctl disable cephqos-exporter.service cephqos-cluster.service cephqos-probe.service ||
            echo "cephqos: a unit is still enabled: systemctl disable 'cephqos-*'" >&2
    fi
    ;;
esac
# RPM calls this for the old version after the new one is there and compiled: that is to stay.
case "$1" in
remove | upgrade | 0)
    find /usr/lib/cephqos -name __pycache__ -type d -prune -exec rm -rf {} +
    ;;
esac
