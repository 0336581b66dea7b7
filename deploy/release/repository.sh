#!/usr/bin/env bash
# Makes an APT and an RPM repository of the packages of a release: repository.sh RELEASE OUT.
# They are signed with the one secret key of this user's gpg. Needs apt-utils, createrepo-c, gpg and rpm.
set -euo pipefail
[[ $# -eq 2 ]] || { echo "usage: repository.sh RELEASE OUT" >&2; exit 2; }
release=$(realpath "$1") out=$(realpath "$2")

# apt reads an index with its sums, and the signature of that.
mkdir -p "$out/apt" "$out/rpm"
cp "$release"/*.deb "$out/apt"
cp "$release"/*.rpm "$out/rpm"
cd "$out/apt"
apt-ftparchive packages . >Packages
gzip --keep --no-name --force Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin=cephqos -o APT::FTPArchive::Release::Label=cephqos \
    -o "APT::FTPArchive::Release::Architectures=amd64 arm64" release . >Release.new
mv Release.new Release
gpg --batch --yes --clearsign --output InRelease Release
gpg --batch --yes --armor --export --output "$out/cephqos.asc"

# dnf checks each package (gpgcheck=1), and repomd.xml by the signature beside it (repo_gpgcheck=1). A signature is
# inside an RPM, so these have other sums than those of the release.
cd "$out/rpm"
key=$(gpg --batch --list-secret-keys --with-colons | awk -F: '/^fpr/ {print $10; exit}')
rpmsign --define "_gpg_name $key" --addsign ./*.rpm >/dev/null
createrepo_c --quiet .
gpg --batch --yes --detach-sign --armor repodata/repomd.xml
