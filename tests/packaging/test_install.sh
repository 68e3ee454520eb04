#!/bin/bash
# The build in ORTCRYPT_BUILD, installed into an empty folder, and used from there by clients in C and C++.
set -euo pipefail
. "$(dirname "$0")/tree.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
DESTDIR='' cmake --install "${ORTCRYPT_BUILD:?}" --prefix "$scratch/prefix" >/dev/null
mv "$scratch/prefix" "$scratch/moved" # nothing in it may know where it was put
check_tree "$scratch/moved" "$scratch/work"
echo "an installed tree compiles, links and runs clients in C and C++"
