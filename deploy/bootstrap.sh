#!/usr/bin/env bash
# Prepares a machine: `bootstrap.sh venv DIR` makes the Python environment, `bootstrap.sh system [COMMAND ...]`
# checks for what the lab needs, and for these commands. Missing Debian packages are installed after a question;
# YES=1 or CI answers it.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

fail() {
    echo "cephqos: $*" >&2
    exit 2
}

install_packages() {
    local packages=("$@") answer=y
    command -v apt-get >/dev/null || fail "missing: ${packages[*]}; this is no Debian or Ubuntu: install them yourself"
    [[ $EUID -eq 0 ]] || fail "missing: ${packages[*]}; run: sudo apt-get install ${packages[*]}"
    if [[ -z ${YES:-} && -z ${CI:-} ]]; then
        [[ -t 0 ]] || fail "missing: ${packages[*]}; install them, or set YES=1 to let make do it"
        read -r -p "Install ${packages[*]} with apt-get? [Y/n] " answer
    fi
    [[ ${answer:-y} == [Yy]* ]] || fail "not installed: ${packages[*]}"
    echo "installing ${packages[*]} …"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${packages[@]}" >/dev/null
}

make_venv() {
    local dir=$1
    command -v "$PYTHON" >/dev/null || install_packages python3 python3-venv
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$("$PYTHON" --version) is too old: 3.11 or newer is needed (set PYTHON=…)"
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
    echo "making the Python environment in $dir …"
    "$PYTHON" -m venv "$dir"
    "$dir/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
        -r requirements-dev.txt
    "$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        --no-build-isolation --editable .
}

check_system() {
    local missing=()
    local -A package_of=([systemd-analyze]=systemd [ip]=iproute2 [tc]=iproute2)
    [[ $EUID -eq 0 ]] || fail "real Ceph needs root, for namespaces and mounts: run it with sudo"
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)
    command -v unshare >/dev/null && command -v nsenter >/dev/null || missing+=(util-linux)
    command -v mount >/dev/null || missing+=(mount)
    for command in "$@"; do
        command -v "$command" >/dev/null || missing+=("${package_of[$command]:-$command}")
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
*) fail "usage: bootstrap.sh venv DIR, or bootstrap.sh system [COMMAND ...]" ;;
esac
