# What the runtime offers.
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

@test "eps names the runtime, its era, the CPU execution provider" {
    ORTCRYPT_ORT=$OLD_RUNTIME run --separate-stderr ortcrypt eps
    [ "$status" = 0 ]
    silent
    grep -q '1.30.0' <<<"$output"
    grep -q 'experimental' <<<"$output"
    grep -q 'CPUExecutionProvider' <<<"$output"
    ORTCRYPT_ORT=$NEW_RUNTIME run --separate-stderr ortcrypt eps
    grep -q '1.32.0' <<<"$output"
    grep -q 'stable' <<<"$output"
}

@test "--ort wins over ORTCRYPT_ORT; a bare file name is one in the working folder" {
    [ "$(ORTCRYPT_ORT=$OLD_RUNTIME ortcrypt eps --ort "$NEW_RUNTIME" --json | jq -r .runtime.version)" = 1.32.0 ]
    ln -s "$OLD_RUNTIME" runtime.so
    [ "$(ortcrypt eps --ort runtime.so --json | jq -r .runtime.version)" = 1.30.0 ]
}

@test "the reference EP: found beside the program, native on both runtimes" {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        run --separate-stderr ortcrypt eps --ort "$runtime" --ep OrtcryptReference --json
        [ "$status" = 0 ]
        silent
        [ "$(jq -r '.eps[] | select(.name == "OrtcryptReference") | .route' <<<"$output")" = native ]
    done
}

@test "the reference EP in an installation: ../lib/ortcrypt" {
    mkdir -p usr/bin usr/lib/ortcrypt
    cp "$ORTCRYPT" usr/bin/
    run --separate-stderr usr/bin/ortcrypt eps --ep OrtcryptReference
    check_failed 1 'libortcrypt_reference_ep.so is not beside'
    cp "$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" usr/lib/ortcrypt/
    usr/bin/ortcrypt eps --ep OrtcryptReference | grep -q OrtcryptReference
}

@test "--probe tries out every EP that compiles, and says what it proved; without it nothing is tried" {
    broken=$ORTCRYPT_BUILD/broken/libortcrypt_broken
    eps=(--ep OrtcryptReference --ep "OrtcryptTried=${broken}_file.so" --json)
    run --separate-stderr ortcrypt eps "${eps[@]}"
    [ "$(jq -r '.eps[] | [.name, .route, (.devices[0].probe | type)] | join(" ")' <<<"$output" | xargs)" = \
        "CPUExecutionProvider none null OrtcryptReference native null OrtcryptTried unproven null" ]
    run --separate-stderr ortcrypt eps "${eps[@]}" --probe
    [ "$status" = 0 ]
    [ "$(jq -r '.eps[] | [.name, .route, .devices[0].probe.proven] | join(" ")' <<<"$output" | xargs)" = \
        "CPUExecutionProvider none OrtcryptReference native true OrtcryptTried refused false" ]
    jq -r '.eps[2].why' <<<"$output" | grep -q 'tried to open /.* for writing'
    [ "$(jq -r '.kernel | has("user_notification") and has("core_pattern") and has("swap")' <<<"$output")" = true ]
    run --separate-stderr ortcrypt eps --ep "OrtcryptTried=${broken}_none.so" --probe
    grep -q '^  route  *native: proved with the canary' <<<"$output"
    grep -q '^core dumps' <<<"$output"
    [ -z "$(find "$HOME" "$TMPDIR" -type f)" ]
}

@test "--probe proves the bridge, and the native route, with a real EP" {
    qnn=$ORTCRYPT_DEPS/eps/qnn/onnxruntime_qnn/libonnxruntime_providers_qnn.so
    need_qnn "$qnn"
    qnn_route() {
        ortcrypt eps --ort "$ORTCRYPT_DEPS/ort/$1/libonnxruntime.so.$1" --ep "QNNExecutionProvider=$qnn" --ep-option backend_type=htp \
            --ep-option soc_model=57 --probe --json 2>/dev/null |
            jq -r '.eps[] | select(.name == "QNNExecutionProvider") | [.route, .devices[0].probe.proven] | join(" ")'
    }
    [ "$(qnn_route 1.32.0)" = "bridged true" ]
    [ "$(qnn_route 1.30.0)" = "native true" ]
    [ "$(qnn_route 1.24.4)" = "bridged true" ]
    [ -z "$(find "$HOME" "$TMPDIR" -type f)" ]
}

@test "telemetry is off whatever the environment says" {
    [ "$(ORT_DISABLE_TELEMETRY=0 ortcrypt eps --ort "$OLD_RUNTIME" --json | jq -r .telemetry)" = off ]
    [ -z "$(find "$HOME" "$TMPDIR" -type f)" ]
}

@test "a runtime that is not there, or none" {
    fails 6 'gone.so' eps --ort gone.so || fails 1 'gone.so' eps --ort gone.so || fails 5 'gone.so' eps --ort gone.so
    echo text >text.so
    run --separate-stderr ortcrypt eps --ort ./text.so
    [ "$status" != 0 ]
    check_failed "$status" 'text.so'
    unset ORTCRYPT_ORT
    if ! ldconfig -p | grep -q 'libonnxruntime.so$'; then
        run --separate-stderr ortcrypt eps
        check_failed "$status" 'libonnxruntime'
        grep -q 'hint: .*ORTCRYPT_ORT' <<<"$stderr"
    fi
}

@test "an EP library that is none" {
    echo text >text.so
    fails 1 'text.so' eps --ep X=text.so
    fails 1 'gone.so' eps --ep X=gone.so || fails 6 'gone.so' eps --ep X=gone.so
    fails 2 'needs its library' eps --ep X
}

@test "eps lists the functions that not every version has, and what is lost without them" {
    ORTCRYPT_ORT=$OLD_RUNTIME ortcrypt eps >old
    ORTCRYPT_ORT=$NEW_RUNTIME ortcrypt eps >new
    grep -Eq '^  OrtApi +1\.28 +by name +set and read back +SessionOptions_SetEpContextDataReadFunc: a bundle' old
    grep -Eq '^  OrtApi +1\.28 +member 426 +set and read back +SessionOptions_SetEpContextDataReadFunc: a bundle' new
    grep -Eq '^  OrtCompileApi +1\.28 +member 16 +refuses NULL +ModelCompilationOptions_SetEpContextDataWriteFunc: ' new
    grep -Eq '^  session entry +1\.31 +- +- +session\.use_external' old
    grep -Eq '^  session entry +1\.31 +entry +place +session\.use_external' new
    [ "$(ORTCRYPT_ORT=$OLD_RUNTIME ortcrypt eps --json | jq '[.functions[] | select(.found == null)] | length')" = 2 ]
    [ "$(ORTCRYPT_ORT=$NEW_RUNTIME ortcrypt eps --json | jq '[.functions[] | select(.found == null)] | length')" = 0 ]
}

@test "QNN: behind the bridge where it knows no callback of the runtime, as it is where it does, refused without the bridge" {
    qnn=QNNExecutionProvider=$ORTCRYPT_DEPS/eps/qnn/onnxruntime_qnn/libonnxruntime_providers_qnn.so
    need_qnn "${qnn#*=}"
    for version in 1.24.4 1.32.0; do
        run --separate-stderr ortcrypt eps --ort "$ORTCRYPT_DEPS/ort/$version/libonnxruntime.so.$version" --ep "$qnn" --json
        [ "$status" = 0 ]
        grep -q 'note: QNNExecutionProvider is registered behind ortcrypt.s bridge' <<<"$stderr"
        [ "$(jq -r '.eps[] | select(.name == "QNNExecutionProvider") | .route' <<<"$output")" = bridged ]
    done
    [ "$(ortcrypt eps --ort "$OLD_RUNTIME" --ep "$qnn" --json 2>/dev/null | jq -r '.eps[] | select(.name == "QNNExecutionProvider") | .route')" = native ]
    run --separate-stderr ortcrypt eps --ep "$qnn" --bridge gone.so --json
    [ "$status" = 0 ]
    [ "$(jq -r '.eps[] | select(.name == "QNNExecutionProvider") | .route' <<<"$output")" = none ]
    jq -r '.eps[] | select(.name == "QNNExecutionProvider") | .why' <<<"$output" | grep -q 'the bridge gone.so'
    make_bundle b
    fails 5 'QNNExecutionProvider cannot be used with ONNX Runtime 1.32.0' compile b -i "$KEY" --ep "$qnn" --bridge gone.so
    grep -q 'hint: the bridge gone.so' <<<"$stderr"
}
