#!/bin/bash
# The packages that `make dist` leaves in DIST (default: build/dist/packages): unpacked into empty folders, and used from there.
set -euo pipefail
. "$(dirname "$0")/tree.sh"
DIST=${1:-$ORTCRYPT_SOURCE/build/dist/packages}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

one() { # one PATTERN: the only file of that name
    local found=("$DIST"/$1)
    [ ${#found[@]} = 1 ] && [ -f "${found[0]}" ] || die "$DIST does not have exactly one $1; run make dist"
    echo "${found[0]}"
}

# The package depends on the libraries that the binaries are linked with, and on nothing else.
depends() {
    local names
    names=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | sort | xargs)
    [ "$names" = "libc6 libjansson4 libssl3" ] || die "the package depends on: $names"
}

deb=$(one 'ortcrypt_*.deb')
tarball=$(one 'ortcrypt-*.tar.gz')
[ "$(dpkg-deb -f "$deb" Package)" = ortcrypt ]
[ "$(basename "$deb")" = "ortcrypt_$(dpkg-deb -f "$deb" Version)_$(dpkg-deb -f "$deb" Architecture).deb" ]
depends
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./postinst | grep -q ldconfig || die "the package does not run ldconfig"
[ -z "$(dpkg-deb -c "$deb" | awk '{print $2}' | grep -v '^root/root$')" ] || die "files of the package are not root's"
[ -z "$(dpkg-deb -c "$deb" | awk '$1 !~ /^l/ && $1 ~ /^.....w|^........w/')" ] || die "files of the package are writable for others"

dpkg-deb -x "$deb" "$scratch/deb"
[ -d "$scratch/deb/usr/lib/$(cc -print-multiarch)/ortcrypt" ] || die "the package does not use the architecture's folder"
check_tree "$scratch/deb/usr" "$scratch/deb-work"
mkdir "$scratch/tar"
tar -xf "$tarball" -C "$scratch/tar" --strip-components=1
[ -d "$scratch/tar/lib/ortcrypt" ] || die "the tarball has no lib/ortcrypt"
check_tree "$scratch/tar" "$scratch/tar-work"
! grep -rl -- "$ORTCRYPT_SOURCE" "$scratch/deb" "$scratch/tar" || die "files of the packages name the folder of the sources"
echo "$(basename "$deb") and $(basename "$tarball"): both compile, link and run clients in C and C++"
