# Giving back the original files.
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

@test "model, external data and extra files come back byte for byte" {
    echo '{"a": 1}' >tokenizer.json
    : >empty.txt
    ortcrypt encrypt "$F/m/ext/good.onnx" -o b -r "$R" --extra tokenizer.json --extra empty.txt >/dev/null
    run --separate-stderr ortcrypt decrypt b -i "$KEY" -o out
    [ "$status" = 0 ]
    silent
    [ "$(find out -type f | sort | paste -sd' ')" = "out/empty.txt out/good.onnx out/tokenizer.json out/weights.bin" ] ||
        [ "$(find out -type f | sort | paste -sd' ')" = "out/empty.txt out/model.onnx out/tokenizer.json out/weights.bin" ]
    cmp out/*.onnx "$F/m/ext/good.onnx"
    cmp out/weights.bin "$F/m/ext/weights.bin"
    cmp out/tokenizer.json tokenizer.json
    [ ! -s out/empty.txt ]
    [ -z "$(find out -type f ! -perm 600)" ]
}

@test "a real model, after it was compiled" {
    [ -f "$MODELS/ppocr_cls.onnx" ] || skip "the model is not here"
    make_bundle b "$MODELS/ppocr_cls.onnx"
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference >/dev/null
    ortcrypt decrypt b -i "$KEY" -o out --json | jq -e '.path == "out"' >/dev/null
    cmp out/*.onnx "$MODELS/ppocr_cls.onnx"
    [ "$(find out -type f | wc -l)" = 1 ]
}

@test "data files in folders below the model's" {
    mkdir -p m/data
    sed 's/x/x/' "$F/m/ext/weights.bin" >/dev/null
    cp "$F/m/ext/weights.bin" m/data/weights.bin
    "$PYTHON" - "$F/m/ext/good.onnx" m/model.onnx <<'END'
import sys
import onnx
model = onnx.load(sys.argv[1], load_external_data=False)
for tensor in model.graph.initializer:
    for entry in tensor.external_data:
        if entry.key == "location":
            entry.value = "data/weights.bin"
onnx.save(model, sys.argv[2])
END
    ortcrypt encrypt m/model.onnx -o b -r "$R" >/dev/null
    ortcrypt decrypt b -i "$KEY" -o out >/dev/null
    cmp out/data/weights.bin m/data/weights.bin
    cmp out/*.onnx m/model.onnx
}

@test "an output folder that exists, also as a link or empty: exit code 6, untouched" {
    make_bundle b
    mkdir out
    fails 6 'out' decrypt b -i "$KEY" -o out
    [ -z "$(ls out)" ]
    ln -s elsewhere link
    fails 6 'link' decrypt b -i "$KEY" -o link
    [ ! -e elsewhere ]
    fails 6 'no/such' decrypt b -i "$KEY" -o no/such/out
}

@test "a damaged bundle, the wrong key: nothing is left" {
    make_bundle b "$F/m/ext/good.onnx"
    fails 4 . decrypt b -i "$F/other.txt" -o out
    flip "$(objects b | head -1)"
    fails 3 . decrypt b -i "$KEY" -o out
    [ "$(ls)" = b ]
}

@test "the key may come through a pipe" {
    make_bundle b
    ortcrypt decrypt b -i - -o out <"$KEY" >/dev/null
    ortcrypt decrypt b -i <(cat "$KEY") -o again >/dev/null
    cmp out/*.onnx again/*.onnx
}
