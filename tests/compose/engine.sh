#!/usr/bin/env bash
# engine.sh TREE FOLDER CHECKOUT [NETWORK]: becomes a Docker engine whose programs are those of a Debian tree.
#
# Called in mount and PID namespaces of its own, and without NETWORK in a network namespace too. Data, socket and
# pid file are in FOLDER. FOLDER and CHECKOUT have the same paths inside. It ends with whoever started it.
set -euo pipefail
tree=$1 folder=$2 checkout=$3 network=${4:-}
mkdir -p "$folder"/{root,data,exec,scratch}
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder/scratch"
mkdir "$folder/scratch/upper" "$folder/scratch/work"
mount -t overlay -o "lowerdir=$tree,upperdir=$folder/scratch/upper,workdir=$folder/scratch/work" overlay "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
for path in "$folder" "$checkout"; do
    mkdir -p "./$path"
    mount --bind "$path" "./$path"
done
cp -L /etc/resolv.conf /etc/hosts etc/
# What this host trusts, builds may trust.
cp -L /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/ 2>/dev/null || true
mkdir -p mnt
pivot_root . mnt
umount --lazy /mnt
[[ -n $network ]] || ip link set lo up
exec dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/docker.pid" \
    --host "unix://$folder/docker.sock" --bridge=none --iptables=false --ip6tables=false --ip-forward=false
