#!/bin/bash
# A Debian package and a tarball in build/dist/packages, from the release build with man pages and completion. Usage: make_dist.sh [JOBS]
# Debian keeps libraries in the architecture's folder, a tarball in lib/: two configurations of one build, nothing is compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
build=build/dist

if ! command -v dpkg-shlibdeps >/dev/null; then
    echo "packaging: a Debian package needs dpkg-shlibdeps; as root: apt-get install -y dpkg-dev" >&2
    exit 1
fi

# Timestamps in the packages are those of the last commit; outside of a repository, of the day.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
fi
export SOURCE_DATE_EPOCH
umask 022

package() { # package GENERATOR LIBDIR
    cmake --preset dist --log-level=NOTICE -DCMAKE_INSTALL_LIBDIR="$2"
    cmake --build --preset dist -j"$jobs"
    (cd "$build" && cpack -G "$1" -B packages >cpack.log 2>&1) || { cat "$build/cpack.log" >&2; exit 1; }
}

rm -rf "$build/packages"
package DEB "lib/$(cc -print-multiarch)"
package TGZ lib
rm -rf "$build/packages/_CPack_Packages"
(cd "$build/packages" && sha256sum ortcrypt*)
