# Weights that stay in the source variant: both runtimes, inside and beside the model.
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

weightless() { # MODEL
    rm -rf b
    make_bundle b "$F/m/ext/good.onnx"
    for embed in "" --embed; do
        ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant "full$embed" $embed >/dev/null
        ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant "light$embed" $embed --weightless >/dev/null
        run --separate-stderr ortcrypt run b -i "$KEY" --ep OrtcryptReference --variant "light$embed" --random 1 \
            --compare "$F/m/ext/good.onnx" --explain --json
        [ "$status" = 0 ] && silent || { echo "$stderr"; return 1; }
        [ "$(jq -r '[.outputs[].compare.within] | all' <<<"$output")" = true ]
        [ "$(jq -r '.plan.assets[] | select(.route == "source model buffer") | .resident' <<<"$output")" = true ]
    done
    ortcrypt inspect b -i "$KEY" --json >all.json
    # the weights are 16640 bytes: in the full ones, not in the light ones
    [ "$(jq '[.variants[] | select(.id | startswith("light")) | [.parts[].len] | add < 4096] | all' all.json)" = true ]
    [ "$(jq '[.variants[] | select(.id | startswith("full")) | [.parts[].len] | add > 16640] | all' all.json)" = true ]
    [ "$(ortcrypt inspect b -i "$KEY" | grep -c 'the weights come from the source')" = 2 ]
    "$ORTCRYPT_BUILD/find_plaintext" "$F"/m/ext/good.onnx "$F"/m/ext/weights.bin -- b
}
@test "--weightless: the engines hold no weights, the source brings them and stays resident" {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        ORTCRYPT_ORT=$runtime weightless
    done
}

@test "an execution provider that cannot: an error, and the bundle as it was" {
    make_bundle b
    before=$(state_of b)
    fails 1 'does not support' compile b -i "$KEY" --ep OrtcryptReference --weightless --ep-option weightless=none
    [ "$(state_of b | grep -v ' d ')" = "$(grep -v ' d ' <<<"$before")" ]
}
