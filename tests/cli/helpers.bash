# What every file of these tests uses. `load helpers`, then `setup_file() { common_setup_file; }` and `setup() { common_setup; }`.
#
# ORTCRYPT_BUILD   the build folder          ORTCRYPT_DEPS   what tools/setup fetched
# $T               a scratch folder of the test, removed afterwards; the working folder
# $F               the same for the whole file: $F/m small models, $F/key.txt, $F/other.txt, $F/recipient
bats_require_minimum_version 1.5.0

: "${ORTCRYPT_SOURCE:=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}"
: "${ORTCRYPT_BUILD:=$ORTCRYPT_SOURCE/build/dev}"
: "${ORTCRYPT_DEPS:=$ORTCRYPT_SOURCE/build/deps}"
ORTCRYPT=$ORTCRYPT_BUILD/ortcrypt
PYTHON=$ORTCRYPT_DEPS/venv/bin/python
MODELS=$ORTCRYPT_DEPS/models
OLD_RUNTIME=${ORTCRYPT_OLD_RUNTIME:-$ORTCRYPT_DEPS/ort/1.30.0/libonnxruntime.so.1.30.0}
NEW_RUNTIME=${ORTCRYPT_NEW_RUNTIME:-$ORTCRYPT_DEPS/ort/1.32.0/libonnxruntime.so.1.32.0}

ortcrypt() { "$ORTCRYPT" "$@"; }

# `!` and all but the last of `a && b` do not end a test: one check a line, and refute for what must not succeed.
refute() {
    if "$@"; then
        echo "must not succeed: $*"
        return 1
    fi
}

common_setup_file() {
    export F=$BATS_FILE_TMPDIR
    "$PYTHON" "$BATS_TEST_DIRNAME/make_models.py" "$F/m"
    for name in key other; do
        "$ORTCRYPT" keygen -o "$F/$name.txt" 2>/dev/null
    done
    sed -n 's/^# public key: //p' "$F/key.txt" >"$F/recipient"
}

common_setup() {
    T=$BATS_TEST_TMPDIR
    F=$BATS_FILE_TMPDIR
    export HOME=$T/home TMPDIR=$T/tmp ORTCRYPT_ORT=$NEW_RUNTIME
    unset ORTCRYPT_IDENTITY ORT_DISABLE_TELEMETRY XDG_CACHE_HOME
    mkdir -p "$HOME" "$TMPDIR" "$T/w"
    cd "$T/w"
    KEY=$F/key.txt
    R=$(cat "$F/recipient" 2>/dev/null || true)
}

# unmount_later FOLDER: also when the test fails. Files that use it have `teardown() { common_teardown; }`.
unmount_later() { MOUNTED=$1; }
common_teardown() {
    if [ -n "${MOUNTED:-}" ]; then
        umount -l "$MOUNTED"
    fi
    if [ -n "${OUTSIDE:-}" ]; then
        rm -rf "$OUTSIDE"
    fi
}

# Makes the bundle $1 of model $2 (default: add.onnx).
make_bundle() { ortcrypt encrypt "${2:-$F/m/add.onnx}" -o "$1" -r "$R" >/dev/null; }

# fails CODE PATTERN ARGUMENTS...: that exit code, exactly one error line, which matches the extended regular expression; nothing on stdout.
fails() {
    local code=$1 pattern=$2
    shift 2
    run --separate-stderr "$ORTCRYPT" "$@"
    check_failed "$code" "$pattern" || return 1
    [ -z "$output" ] || { echo "on standard output: $output"; return 1; }
}

# The same after a `run --separate-stderr` of one's own.
check_failed() {
    local code=$1 pattern=$2 errors
    errors=$(printf '%s\n' "$stderr" | grep '^ortcrypt: error: ' || true)
    if [ "$status" -ne "$code" ] || [ "$(printf '%s\n' "$errors" | wc -l)" != 1 ] || ! printf '%s' "$errors" | grep -Eq -- "$pattern"; then
        printf 'exit code %s, wanted %s; wanted one error line with: %s\n%s\n' "$status" "$code" "$pattern" "$stderr"
        return 1
    fi
    # Never a path of the build, and no half sentence.
    [ -z "$(printf '%s' "$errors" | grep -E 'failed to|onnxruntime_src|\(null\)|: src/')" ]
}

# For setup_file: the models $F/external and $F/embedded with $1 MiB of weights outside and inside, and a bundle of each, not split.
make_big_bundles() {
    local kind
    for kind in external embedded; do
        mkdir "$F/$kind"
        "$PYTHON" "$ORTCRYPT_SOURCE/tests/models/make_models.py" --big "$1" --kind "$kind" "$F/$kind/model.onnx"
        "$ORTCRYPT" encrypt "$F/$kind/model.onnx" -o "$F/$kind.ortc" -r "$(cat "$F/recipient")" --no-split >/dev/null
    done
}

# For a path of QNN's library: skips where it is not, or does not run as it should.
need_qnn() {
    [ -f "$1" ] || skip "no QNN here"
    [ -z "${ORTCRYPT_SANITIZE:-}" ] || skip "QNN takes no model and crashes the leak detector in a sanitized process"
}

# Nothing on standard error; but on a kernel without Landlock or seccomp, that it is one.
silent() { [ -z "$(printf '%s' "$stderr" | grep -v '^ortcrypt: note: the sandbox does not hold everything here: ')" ]; }

# Objects of bundle $1, largest first.
objects() { find "$1/objects" -type f -printf '%s %p\n' | sort -rn | cut -d' ' -f2-; }

# Flips one bit of file $1 at offset $2 (default: the middle).
flip() {
    local offset=${2:-$(($(stat -c %s "$1") / 2))} byte
    byte=$(od -An -tu1 -j "$offset" -N1 "$1" | tr -d ' ')
    printf '%b' "\\x$(printf '%02x' $((byte ^ 1)))" | dd of="$1" bs=1 seek="$offset" conv=notrunc status=none
}

# Everything below a folder with content and modes, to see whether something changed.
state_of() { (cd "$1" && find . -printf '%p %y %m %s\n' | sort && find . -type f -print0 | sort -z | xargs -0 -r sha256sum); }

# One member of the JSON on stdout: json_of EXPRESSION <<<"$output"
json_of() { jq -er "$1"; }
