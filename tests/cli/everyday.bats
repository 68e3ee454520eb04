# What people meet every day: interrupted work, paths and keys of every kind, models of every kind, and what is shown meanwhile.
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

# Encrypted, run, compiled, run and decrypted: the outputs of the plaintext model, and its files byte for byte.
# round NAME: a model of tests/models, with the inputs made for it.
round() {
    local name=$1 folder=$ORTCRYPT_DEPS/testmodels/$1 inputs=() file input
    for file in "$folder/$name".*.npy; do
        input=${file##*/"$name".}
        case $input in
            expected.*) ;;
            *) inputs+=(--input "${input%.npy}=$file") ;;
        esac
    done
    ortcrypt encrypt "$folder/$name.onnx" -o "$name" -r "$R" >/dev/null
    ortcrypt run "$name" -i "$KEY" "${inputs[@]}" --compare "$folder/$name.onnx" >/dev/null
    ortcrypt compile "$name" -i "$KEY" --ep OrtcryptReference --allow-none-compiled >/dev/null
    ortcrypt run "$name" -i "$KEY" --ep OrtcryptReference "${inputs[@]}" --compare "$folder/$name.onnx" >/dev/null
    ortcrypt decrypt "$name" -i "$KEY" -o "$name.out" >/dev/null
    (cd "$name.out" && find . -type f) | while read -r file; do
        cmp "$name.out/$file" "$folder/$file" || return 1
    done
    rm -r "$name" "$name.out"
}

rounds() {
    local name
    for name in ext_same_base ext_subfolder ext_unicode ext_unaligned ext_shared_offset ext_empty ext_int4 int4 strings sparse functions \
        opset23; do
        echo "$name" # shown when it fails
        round "$name"
    done
}

@test "models of every kind, on 1.30.0" {
    export ORTCRYPT_ORT=$OLD_RUNTIME
    rounds
}

@test "models of every kind, on 1.32.0" { rounds; }

@test "misaligned data is copied, and the plan says so" {
    models=$ORTCRYPT_DEPS/testmodels
    ortcrypt encrypt "$models/ext_unaligned/ext_unaligned.onnx" -o b -r "$R" >/dev/null
    ortcrypt run b -i "$KEY" --random 1 --explain | grep -q 'no.* multiple of its element size'
    ortcrypt encrypt "$models/ext_simple/ext_simple.onnx" -o c -r "$R" >/dev/null
    ortcrypt run c -i "$KEY" --random 1 --explain | grep -q 'used directly'
}

@test "a model that is another kind of file: the kind is named, nothing is made" {
    wrong=$ORTCRYPT_DEPS/testmodels/not_onnx
    fails 1 'ort\.onnx.*\.ort model' encrypt "$wrong/ort.onnx" -o b -r "$R"
    fails 1 'gzip\.onnx.*gzip' encrypt "$wrong/gzip.onnx" -o b -r "$R"
    fails 1 'zip\.onnx.*[Zz][Ii][Pp]' encrypt "$wrong/zip.onnx" -o b -r "$R"
    fails 1 'safetensors' encrypt "$wrong/safetensors.onnx" -o b -r "$R"
    [ -z "$(ls)" ]
}

@test "paths that are not ASCII: model, data, bundle, key, inputs, outputs, extra files" {
    dir='Größe und Maß/模型 ✓'
    mkdir -p "$dir"
    cp "$ORTCRYPT_DEPS/testmodels/ext_simple/ext_simple.onnx" "$dir/netz ü.onnx"
    cp "$ORTCRYPT_DEPS/testmodels/ext_simple/weights.bin" "$dir"
    cp "$ORTCRYPT_DEPS/testmodels/ext_simple/ext_simple.x.npy" "$dir/eingabe π.npy"
    cp "$KEY" "$dir/schlüssel.txt"
    echo '{}' >"$dir/ñ.json"
    ortcrypt encrypt "$dir/netz ü.onnx" -o "$dir/bündel" -r "$R" --extra "$dir/ñ.json" --label 'größe=klein' >/dev/null
    ortcrypt compile "$dir/bündel" -i "$dir/schlüssel.txt" --ep OrtcryptReference >out.txt
    grep -q 'bündel' out.txt
    ortcrypt run "$dir/bündel" -i "$dir/schlüssel.txt" --ep OrtcryptReference --input "x=$dir/eingabe π.npy" --output "$dir/ausgabe é" \
        --compare "$dir/netz ü.onnx" | grep -q 'ausgabe é/y.npy'
    [ -f "$dir/ausgabe é/y.npy" ]
    ortcrypt inspect "$dir/bündel" -i "$dir/schlüssel.txt" | grep -q 'ñ.json'
    ortcrypt inspect "$dir/bündel" -i "$dir/schlüssel.txt" --json | jq -e '.labels["größe"] == "klein"' >/dev/null
    ortcrypt decrypt "$dir/bündel" -i "$dir/schlüssel.txt" -o "$dir/zurück" >/dev/null
    cmp "$dir/zurück/netz ü.onnx" "$dir/netz ü.onnx"
    cmp "$dir/zurück/ñ.json" "$dir/ñ.json"
    cmp "$dir/zurück/weights.bin" "$dir/weights.bin"
}

@test "a key through a pipe: <(command), /dev/stdin, /dev/fd/N, a FIFO" {
    make_bundle b
    opens() { ortcrypt inspect b "$@" | grep -q '^recipients'; }
    opens -i <(cat "$KEY")
    opens -i /dev/stdin <"$KEY"
    cat "$KEY" | opens -i /dev/stdin
    opens -i /dev/fd/7 7<"$KEY"
    opens -i /proc/self/fd/7 7<"$KEY"
    mkfifo fifo
    cat "$KEY" >fifo &
    opens -i fifo
    wait $!
    fails 4 . inspect b -i <(cat "$F/other.txt")
    fails 6 'descriptor' inspect b -i /dev/fd/99
    fails 6 '/dev/null is no regular file' inspect b -i /dev/null
}

# interrupted COUNT OUTPUT|- BUNDLE|- COMMAND...: see interrupt.py. Some were stopped, or the test is none.
interrupted() {
    local count=$1 output=$2 bundle=$3
    shift 3
    run "$PYTHON" "$BATS_TEST_DIRNAME/interrupt.py" "$count" "$output" "$bundle" -- "$ORTCRYPT" "$@"
    echo "$output"
    [ "$status" = 0 ]
    refute grep -q '^0 of' <<<"$output"
}

@test "SIGINT while encrypting and decrypting: nothing is left, whenever it comes" {
    mkdir place
    interrupted 30 place/b - encrypt "$MODELS/minilm_int8.onnx" -o place/b -r "$R"
    [ -z "$(ls -A place)" ]
    make_bundle b "$MODELS/minilm_int8.onnx"
    interrupted 30 place/out - decrypt b -i "$KEY" -o place/out
    [ -z "$(ls -A place)" ]
}

@test "SIGINT while compiling: the bundle is as it was, or has the new variant, and verifies" {
    mkdir place
    make_bundle place/b "$MODELS/ppocr_cls.onnx"
    interrupted 30 - place/b compile place/b -i "$KEY" --ep OrtcryptReference
    [ -z "$(ls -A place/b/tmp)" ]
    ortcrypt verify place/b -i "$KEY" >/dev/null
    [ "$(ls -A place)" = b ]
    interrupted 10 place/c - compile place/b -i "$KEY" --ep OrtcryptReference -o place/c
    [ "$(ls -A place)" = b ]
}

@test "long work shows bytes, rate and remaining time on a terminal, and nothing elsewhere" {
    truncate -s 300M big.bin
    "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" -- "$ORTCRYPT" encrypt "$F/m/add.onnx" -o b -r "$R" --extra big.bin >shown.txt
    grep -aEq 'encrypting \[#+-*\] [0-9.]+ [KMG]iB of 300\.0 MiB, [0-9.]+ [KMG]iB/s, [0-9]+:[0-9]{2} left' shown.txt
    "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" -- "$ORTCRYPT" decrypt b -i "$KEY" -o out >shown.txt
    grep -aEq 'decrypting \[#+-*\] .* of 300\.0 MiB, .*/s, .* left' shown.txt
    run --separate-stderr ortcrypt verify b -i "$KEY"
    [ "$status" = 0 ]
    silent
}

@test "inspect: a table of variants, roles, sizes and recipients" {
    make_bundle b "$F/m/ext/good.onnx"
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference >/dev/null
    ortcrypt inspect b -i "$KEY" >table.txt
    grep -Eq "^recipients +$R\$" table.txt
    grep -Eq '^variant +source \(source\)$' table.txt
    grep -Eq '^variant +ortcryptreference-1 \(compiled\)$' table.txt
    grep -Eq ' external +16\.2 KiB  weights\.bin$' table.txt
    grep -Eq ' ep_context +[0-9.]+ (bytes|KiB)  .*\.bin$' table.txt
    grep -Eq '^stored +[0-9.]+ KiB in [0-9]+ encrypted objects$' table.txt
}

@test "--repeat: percentiles in their order, as many runs as wanted" {
    make_bundle b
    ortcrypt run b -i "$KEY" --random 1 --dim batch=2 --repeat 100 --json >run.json
    jq -e '.latency_ms | .runs == 100 and .min > 0 and .min <= .p50 and .p50 <= .p90 and .p90 <= .p99 and .p99 <= .max' run.json >/dev/null
    ortcrypt run b -i "$KEY" --random 1 --dim batch=2 --repeat 3 | grep -Eq '^latency +min .*, p50 .*, p90 .*, p99 .*, max .* ms of 3 runs$'
}

@test "what ONNX Runtime says is passed on with the step, and without places in its source" {
    "$PYTHON" -c 'import onnx, sys; m = onnx.load(sys.argv[1]); m.ir_version = 99; onnx.save(m, "newer.onnx")' "$F/m/add.onnx"
    ortcrypt encrypt newer.onnx -o b -r "$R" >/dev/null
    for ORTCRYPT_ORT in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        fails 1 'error: ONNX Runtime does not load this model: Unsupported model IR version: 99' run b -i "$KEY" --random 1
        fails 1 'error: ONNX Runtime does not compile this model: .*IR version: 99' compile b -i "$KEY" --ep OrtcryptReference
        refute grep -q onnxruntime_src <<<"$stderr"
    done
}
