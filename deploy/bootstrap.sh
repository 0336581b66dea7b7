#!/usr/bin/env bash
# Prepares a machine: `bootstrap.sh venv DIR` makes the Python environment, `bootstrap.sh system [NEEDED ...]`
# checks for what the lab needs, and for these commands and files. Missing packages are installed with apt-get, by sudo
# if this user is not root. With NO_INSTALL=1 nothing is installed: what is missing is listed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin # debootstrap and mount, for a user who is not root

fail() {
    echo "cephqos: $*" >&2
    exit 2
}

as_root() {
    if [[ $EUID -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

install_packages() {
    local packages="$*"
    [[ -z ${NO_INSTALL:-} ]] || fail "missing: $packages; NO_INSTALL is set, so nothing was installed"
    command -v apt-get >/dev/null || fail "missing: $packages; there is no apt-get here: install them yourself"
    [[ $EUID -eq 0 ]] || command -v sudo >/dev/null || fail "missing: $packages; run as root: apt-get install $packages"
    echo "installing $packages …"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null </dev/null
}

new_enough() {
    command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'
}

# PYTHON, or the first that is new enough: Ubuntu 22.04 has a python3.11 beside its own.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

make_venv() {
    local dir=$1 python
    python=$(find_python)
    if [[ -z $python && -z ${PYTHON:-} ]]; then
        if command -v python3 >/dev/null; then
            install_packages python3.11 python3.11-venv
        else
            install_packages python3 python3-venv
        fi
        python=$(find_python)
    fi
    [[ -n $python ]] ||
        fail "Python 3.11 or newer is needed; found: $("${PYTHON:-python3}" --version 2>&1 || true) (set PYTHON=…)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_packages "${python##*/}-venv"
    echo "making the Python environment in $dir …"
    "$python" -m venv "$dir"
    "$dir/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
        -r requirements-dev.txt
    "$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --no-build-isolation --editable .
}

check_system() {
    local missing=()
    local -A package_of=(
        [systemd-analyze]=systemd [ip]=iproute2 [tc]=iproute2 [cc]="gcc libc6-dev"
        [/usr/share/i18n/locales/de_DE]=locales [/usr/share/zoneinfo/Asia/Kolkata]=tzdata
    )
    [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
        fail "real Ceph needs root, for namespaces and mounts, and there is no sudo here: run make as root"
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
    command -v unshare >/dev/null && command -v nsenter >/dev/null || missing+=(util-linux)
    command -v mount >/dev/null || missing+=(mount)
    for needed in "$@"; do # a command, or a file
        # shellcheck disable=SC2206 # one of them comes in two packages
        [[ $needed == /* && -e $needed ]] || command -v "$needed" >/dev/null ||
            missing+=(${package_of[$needed]:-$needed})
    done
    if ((${#missing[@]})); then
        install_packages "${missing[@]}"
    fi
}

case ${1:-} in
venv)
    [[ -n ${2:-} ]] || fail "usage: bootstrap.sh venv DIR, the folder of the Python environment"
    make_venv "$2"
    ;;
system) check_system "${@:2}" ;;
*) fail "usage: bootstrap.sh venv DIR, or bootstrap.sh system [NEEDED ...]" ;;
esac
