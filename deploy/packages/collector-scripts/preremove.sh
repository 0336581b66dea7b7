#!/bin/sh
set -e
# Debian says `remove`, RPM the number of versions that stay.
case "$1" in
remove | 0)
    if [ -d /run/systemd/system ]; then
        # One that is masked, or a systemd that does not answer, does not keep the package installed.
        systemctl disable --now cephqos-collector.service ||
            echo "cephqos: a service did not end: systemctl status 'cephqos-*'" >&2
    elif command -v systemctl >/dev/null; then
        # In an image that is being built: installed again, nothing is to start at boot either.
        systemctl disable cephqos-collector.service ||
            echo "cephqos: a unit is still enabled: systemctl disable 'cephqos-*'" >&2
    fi
    ;;
esac
