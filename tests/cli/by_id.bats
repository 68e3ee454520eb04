# EPs built with the helper on every runtime there is: callbacks by id, also where the runtime has none (before 1.28).
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

# The runtimes that tools/setup fetched. 1.23 opens a library beside itself by its own search path, which AddressSanitizer's dlopen does
# not know: not there.
runtimes() {
    local left_out=${ORTCRYPT_SANITIZE:+/1.23.}
    ls "$ORTCRYPT_DEPS"/ort/*/libonnxruntime.so.* | grep -vF "${left_out:-none}"
}

# everywhere EP[=LIBRARY]: compiles with its data outside the model, loads, compares, and looks at what was written.
everywhere() {
    local runtime
    for runtime in $(runtimes); do
        echo "on $runtime"
        export ORTCRYPT_ORT=$runtime
        rm -rf b
        make_bundle b "$F/m/sub.onnx"
        run --separate-stderr ortcrypt compile b -i "$KEY" --ep "$1" --json
        [ "$status" = 0 ] || { echo "$stderr"; return 1; }
        [ "$(jq '.ep_context_nodes > 0 and .blobs == .ep_context_nodes and .verified' <<<"$output")" = true ]
        run --separate-stderr ortcrypt run b -i "$KEY" --ep "$1" --random 1 --dim batch=2 --compare "$F/m/sub.onnx" --json
        [ "$status" = 0 ] || { echo "$stderr"; return 1; }
        [ "$(jq '[.outputs[].compare.within] | all' <<<"$output")" = true ]
        [ "$(find . "$HOME" "$TMPDIR" -type f ! -path './b/*' | wc -l)" = 0 ]
    done
}

@test "the reference EP, its data outside the model, on every runtime" { everywhere OrtcryptReference; }

@test "an EP in C++ with ep_context.hpp, the same" { everywhere "OrtcryptCpp=$ORTCRYPT_BUILD/libortcrypt_ep_cpp.so"; }

# An EP library that has no ortcrypt_ep_attach: a copy of the reference EP whose symbol is spelt otherwise.
@test "before 1.28 a library that takes no ids is refused, and nothing is written" {
    sed 's/ortcrypt_ep_attach/ortcrypt_ep_attacX/g' "$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" >old.so
    local old=$ORTCRYPT_DEPS/ort/1.24.4/libonnxruntime.so.1.24.4
    make_bundle b "$F/m/sub.onnx"
    before=$(state_of b)
    fails 5 'OrtcryptReference cannot be used with ONNX Runtime 1.24.4' compile b -i "$KEY" --ep OrtcryptReference=old.so --ort "$old"
    grep -q 'hint: .*takes none from ortcrypt' <<<"$stderr"
    [ "$(state_of b)" = "$before" ]
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference=old.so --ort "$old" --embed
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference=old.so --ort "$OLD_RUNTIME"
}
