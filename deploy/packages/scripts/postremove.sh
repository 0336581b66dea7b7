#!/bin/sh
set -e
# Keys and what was recorded stay until they are purged, as configuration does. The user stays: files may be its own.
if [ "$1" = purge ]; then
    rm -rf /etc/cephqos /var/lib/cephqos-exporter /var/lib/cephqos-cluster
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload ||
        echo "cephqos: systemd still knows the removed units: systemctl daemon-reload" >&2
fi
