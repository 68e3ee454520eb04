# check-ep as a person meets it; what it says of each EP and runtime is in tests/conform.
load helpers
setup() { common_setup; }

@test "the reference EP keeps the contract: a table, exit code 0, nothing left behind" {
    run --separate-stderr ortcrypt check-ep "$ORTCRYPT_BUILD/libortcrypt_reference_ep.so"
    [ "$status" = 0 ]
    silent
    grep -q '^EP  *OrtcryptReference' <<<"$output"
    grep -q '^runtime  *ONNX Runtime 1.32.0' <<<"$output"
    grep -q '^uses the read callback  *holds' <<<"$output"
    refute grep -q 'fails' <<<"$output"
    [ -z "$(find "$HOME" "$TMPDIR" . -type f)" ]
}

@test "a fault is named: exit code 1, in the table, in the error and in JSON" {
    run --separate-stderr ortcrypt check-ep "$ORTCRYPT_BUILD/broken/libortcrypt_broken_leak.so"
    check_failed 1 'OrtcryptTried does not keep the contract: "releases the configuration it asked for" does not hold'
    grep -q '^releases the configuration it asked for  *fails: 4 asked for, 2 released' <<<"$output"
    run --separate-stderr ortcrypt check-ep "$ORTCRYPT_BUILD/broken/libortcrypt_broken_leak.so" --json
    [ "$status" = 1 ]
    [ "$(jq -r '[.rows[] | select(.verdict == "fails") | .name] | join(" ")' <<<"$output")" = config ]
    [ "$(jq -r '.holds, .error.exit_code' <<<"$output" | xargs)" = "false 1" ]
}

@test "nothing to check: not there, no library, no EP, a runtime without callbacks" {
    fails 6 'gone.so' check-ep gone.so
    echo text >text.so
    fails 1 'text.so' check-ep text.so
    fails 1 'no library of execution providers' check-ep "$ORTCRYPT_BUILD/libortcrypt.so"
    fails 6 'gone.so' check-ep "$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" --ort ./gone.so
    fails 5 'no EPContext callbacks' check-ep "$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" --ort "$ORTCRYPT_DEPS/ort/1.24.4/libonnxruntime.so.1.24.4"
    fails 2 'check-ep needs' check-ep
}
