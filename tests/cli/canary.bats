# Execution providers that no table proves: tried out with a model that is no secret before they see one that is.
load helpers
setup_file() { common_setup_file; }
setup() {
    common_setup
    make_bundle model.ortc
    BROKEN=$ORTCRYPT_BUILD/broken/libortcrypt_broken
}

compile() { ortcrypt compile model.ortc -i "$KEY" --ep "OrtcryptTried=$1" "${@:2}"; }

# refused_canary LIBRARY PATTERN: exit code 5 with that reason, the bundle as before, and nothing else anywhere.
refused_canary() {
    local before=$(state_of .)
    run --separate-stderr compile "$1"
    check_failed 5 "$2" || return 1
    [ "$before" = "$(state_of .)" ]
    [ -z "$(find "$HOME" "$TMPDIR" -type f)" ]
}

@test "an EP that keeps the contract is proved, said so, and used, on both runtimes" {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        ORTCRYPT_ORT=$runtime run --separate-stderr compile "${BROKEN}_none.so"
        [ "$status" = 0 ]
        grep -q 'note: OrtcryptTried on ONNX Runtime .* is in no table: proved with the canary' <<<"$stderr"
        grep -q 'tried to open no file for writing' <<<"$stderr"
    done
}

@test "it runs, and the session is refused with an EP that is not proved" {
    ortcrypt compile model.ortc -i "$KEY" --ep "OrtcryptTried=${BROKEN}_none.so" 2>/dev/null >/dev/null
    ortcrypt run model.ortc -i "$KEY" --ep "OrtcryptTried=${BROKEN}_none.so" --random 1 --dim batch=1 \
        --compare "$F/m/add.onnx"
    run --separate-stderr ortcrypt run model.ortc -i "$KEY" --ep "OrtcryptTried=${BROKEN}_cut.so" --random 1 --dim batch=1
    [ "$status" = 0 ] # its fault does not show with whole data
    run --separate-stderr ortcrypt run model.ortc -i "$KEY" --ep "OrtcryptTried=${BROKEN}_silent.so" --random 1 --dim batch=1
    check_failed 5 'without calling the write callback'
}

@test "refused: it writes a file" {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        ORTCRYPT_ORT=$runtime refused_canary "${BROKEN}_file.so" \
            'OrtcryptTried is refused on ONNX Runtime 1\.3.*: with the callbacks set, it tried to open /.* for writing'
    done
}

@test "refused: it never calls the write callback" {
    refused_canary "${BROKEN}_silent.so" 'compiled the canary without calling the write callback'
}

@test "refused: it does not advertise, which only newer runtimes ask for" {
    refused_canary "${BROKEN}_mute.so" 'it does not advertise the EPContext callbacks'
    ORTCRYPT_ORT=$OLD_RUNTIME compile "${BROKEN}_mute.so"
}

@test "refused: a library that is no execution provider of that name" {
    run --separate-stderr ortcrypt compile model.ortc -i "$KEY" --ep "Another=${BROKEN}_none.so"
    check_failed 1 'no device of the execution provider Another'
}
