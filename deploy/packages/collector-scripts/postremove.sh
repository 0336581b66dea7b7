#!/bin/sh
set -e
# Offsets stay until they are purged: a collector that is installed again goes on where it was.
if [ "$1" = purge ]; then
    rm -rf /etc/cephqos-collector /var/lib/cephqos-collector
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload ||
        echo "cephqos: systemd still knows the removed units: systemctl daemon-reload" >&2
fi
