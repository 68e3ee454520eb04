# Real models on the real aarch64 ONNX Runtime, which has no EPContext callbacks of its own: run, compiled and refused when altered.
: "${ORTCRYPT_BUILD:?}" "${ORTCRYPT_DEPS:?}" "${ORTCRYPT_NEW_RUNTIME:?}"

setup_file() {
    "$ORTCRYPT_BUILD/ortcrypt" keygen -o "$BATS_FILE_TMPDIR/key.txt" 2>/dev/null
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/w" "$BATS_TEST_TMPDIR/home"
    cd "$BATS_TEST_TMPDIR/w"
    export HOME=$BATS_TEST_TMPDIR/home TMPDIR=$BATS_TEST_TMPDIR/home ORTCRYPT_ORT=$ORTCRYPT_NEW_RUNTIME
    KEY=$BATS_FILE_TMPDIR/key.txt
    R=$(sed -n 's/^# public key: //p' "$KEY")
    MODELS=$ORTCRYPT_DEPS/models
    unset ORTCRYPT_IDENTITY ORT_DISABLE_TELEMETRY XDG_CACHE_HOME
}

ortcrypt() { "$ORTCRYPT_BUILD/ortcrypt" "$@"; }

# Encrypts, runs and compares with the plaintext model on the same runtime; then one flipped bit is refused.
round() { # MODEL OPTIONS...
    local model=$1 object
    shift
    ortcrypt encrypt "$model" -o b -r "$R" >/dev/null
    run --separate-stderr ortcrypt run b -i "$KEY" --random 1 "$@" --compare "$model" --explain --json
    [ "$status" = 0 ] || { echo "$stderr"; return 1; }
    jq -e '(.outputs | length) > 0 and ([.outputs[].compare.equal_bytes] | all) and .plan.kind == "source"' <<<"$output"
    object=$(find b/objects -type f -printf '%s %p\n' | sort -rn | head -1 | cut -d' ' -f2-)
    printf 'XXXX' | dd of="$object" bs=1 seek=$(($(stat -c %s "$object") / 2)) conv=notrunc status=none
    run ortcrypt run b -i "$KEY" --random 1 "$@"
    [ "$status" = 3 ]
}

bats_require_minimum_version 1.5.0

@test "the library is an aarch64 one and the runtime says 1.27.0 with no callbacks" {
    [ "$(od -An -tu2 -j18 -N2 "$ORTCRYPT_NEW_RUNTIME" | tr -d ' ')" = 183 ]
    run --separate-stderr ortcrypt eps --json
    [ "$status" = 0 ]
    jq -e '.runtime.version == "1.27.0"' <<<"$output"
}

@test "PP-OCR classifier: encrypted, run, equal to the plaintext model, refused when altered" { round "$MODELS/ppocr_cls.onnx" --dim x:2=48 --dim x:3=192; }
@test "PP-OCR recogniser: the same" { round "$MODELS/ppocr_rec.onnx" --dim x:2=48 --dim x:3=64; }
@test "PP-OCR detector: the same" { round "$MODELS/ppocr_det.onnx" --dim x:2=64 --dim x:3=64; }
@test "magika: the same" { round "$MODELS/magika.onnx"; }
@test "MiniLM, int8: the same" { round "$MODELS/minilm_int8.onnx" --dim batch=1 --dim sequence=16; }
@test "silero-vad: the same" { round "$MODELS/silero_vad.onnx" --dim input:1=256; }

@test "compiled with data outside the model, by ids, on a runtime without callbacks; nothing but ciphertext is written" {
    ortcrypt encrypt "$MODELS/ppocr_cls.onnx" -o b -r "$R" >/dev/null
    run --separate-stderr ortcrypt compile b -i "$KEY" --ep OrtcryptReference --json
    [ "$status" = 0 ] || { echo "$stderr"; return 1; }
    jq -e '.ep_context_nodes > 0 and .blobs == .ep_context_nodes and .verified' <<<"$output"
    run --separate-stderr ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 --dim x:2=48 --dim x:3=192 --compare "$MODELS/ppocr_cls.onnx" --explain --json
    [ "$status" = 0 ] || { echo "$stderr"; return 1; }
    jq -e '([.outputs[].compare.within] | all) and .plan.kind == "compiled"' <<<"$output"
    [ "$(ls)" = b ]
    [ -z "$(find "$HOME" -type f)" ]
}
