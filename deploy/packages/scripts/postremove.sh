#!/bin/sh
set -e
# Keys stay until they are purged, as configuration does. The user stays: files may be its own.
if [ "$1" = purge ]; then
    rm -rf /etc/cephqos
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload ||
        echo "cephqos: systemd still knows the removed units: systemctl daemon-reload" >&2
fi
