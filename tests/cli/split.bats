# encrypt --split: weights moved out of the model; the same outputs, the same file back.
load helpers
setup_file() {
    common_setup_file
    "$PYTHON" "$ORTCRYPT_SOURCE/tests/models/make_models.py" --big 32 --kind embedded "$F/big.onnx"
    "$PYTHON" - "$F/fold.onnx" "$F/flat.onnx" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as n
dice = np.random.default_rng(3)
def weight(name, shape, kind=np.float32):
    return n.from_array(dice.standard_normal(shape).astype(kind), name)
# what the optimizer folds: a transposed weight, a cast one, one that is read by an If; and a large shape that must stay readable
branch = lambda name, op: h.make_graph([h.make_node(op, ["y1", "outer"], ["o_" + name])], name, [], [h.make_tensor_value_info("o_" + name, T.FLOAT, None)])
nodes = [h.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]), h.make_node("MatMul", ["x", "wt"], ["y0"]),
         h.make_node("Cast", ["d"], ["df"], to=T.FLOAT), h.make_node("MatMul", ["y0", "df"], ["y1"]),
         h.make_node("ReduceSum", ["y1"], ["s"], keepdims=0), h.make_node("Greater", ["s", "zero"], ["c"]),
         h.make_node("If", ["c"], ["y"], then_branch=branch("add", "Add"), else_branch=branch("sub", "Sub"))]
graph = h.make_graph(nodes, "fold", [h.make_tensor_value_info("x", T.FLOAT, [1, 64])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                     [weight("w", (64, 64)), weight("d", (64, 64), np.float64), weight("outer", (1, 64)), n.from_array(np.float32(0), "zero"),
                      weight("unused", (64, 64))])
graph.initializer[2].CopyFrom(n.from_array(np.arange(64 * 64, dtype=np.float32).reshape(64, 64)[:1].repeat(64, 0)[:64], "outer"))
graph.initializer[0].data_location = T.DEFAULT  # as a loader of external data leaves it
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), sys.argv[1])
flat = h.make_graph(nodes[:4], "flat", graph.input, [h.make_tensor_value_info("y1", T.FLOAT, None)], [graph.initializer[0], graph.initializer[1]])
onnx.save(h.make_model(flat, opset_imports=[h.make_opsetid("", 17)], ir_version=8), sys.argv[2])
END
}
setup() { common_setup; }

# The original files of bundle $1 in folder $2: model $3, and nothing of the bundle's own.
back() {
    ortcrypt decrypt "$1" -i "$KEY" -o "$2" >/dev/null
    cmp "$2/$(basename "$3")" "$3"
    [ "$(find "$2" -type f | wc -l)" = 1 ]
}

@test "the original file comes back byte for byte, and no copy of it is stored" {
    ortcrypt encrypt "$F/big.onnx" -o b -r "$R" --split >/dev/null
    back b out "$F/big.onnx"
    [ "$(du -sb b | cut -f1)" -lt $(($(stat -c %s "$F/big.onnx") * 102 / 100)) ]
    ortcrypt inspect b -i "$KEY" | grep -q 'weights *2 outside the model'
    ortcrypt inspect b -i "$KEY" | grep -q 'split '
    ortcrypt inspect b -i "$KEY" --json | jq -e '.variants[0]["x-split"].size == '"$(stat -c %s "$F/big.onnx")" >/dev/null
    ortcrypt verify b -i "$KEY" >/dev/null
}

@test "below 64 MiB only when asked; never when told so; not both" {
    make_bundle b "$F/big.onnx"
    ortcrypt encrypt "$F/big.onnx" -o c -r "$R" --no-split >/dev/null
    for bundle in b c; do
        ortcrypt inspect "$bundle" -i "$KEY" --json | jq -e '.variants[0] | has("x-split") | not' >/dev/null
    done
    fails 2 'exclude each other' encrypt "$F/big.onnx" -o d -r "$R" --split --no-split
    run --separate-stderr ortcrypt encrypt "$F/m/add.onnx" -o e -r "$R" --split
    [ "$status" = 0 ]
    grep -q 'note: .*nothing is split' <<<"$stderr"
}

@test "the same outputs on every runtime that is here: large, folded by the optimizer, read by a subgraph, real" {
    declare -A models=([big]="$F/big.onnx" [fold]="$F/fold.onnx" [magika]="$MODELS/magika.onnx")
    runtimes=$(ls "$ORTCRYPT_DEPS/ort")
    [ -n "$runtimes" ]
    for name in "${!models[@]}"; do
        [ -f "${models[$name]}" ] || continue
        ortcrypt encrypt "${models[$name]}" -o "$name" -r "$R" --split >/dev/null
        for version in $runtimes; do
            ortcrypt run "$name" -i "$KEY" --random 5 --ort "$ORTCRYPT_DEPS/ort/$version/libonnxruntime.so.$version" \
                --compare "${models[$name]}" >shown 2>notes || { echo "$name on $version"; cat notes; return 1; }
            grep -q 'equal bytes: yes' shown || { echo "$name on $version differs"; return 1; }
        done
    done
}

@test "a split bundle compiles, runs, and still decrypts" {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        rm -rf b out
        ortcrypt encrypt "$F/flat.onnx" -o b -r "$R" --split >/dev/null
        ortcrypt compile b -i "$KEY" --ep OrtcryptReference --ort "$runtime" >/dev/null
        ortcrypt run b -i "$KEY" --ep OrtcryptReference --ort "$runtime" --random 2 --compare "$F/flat.onnx" | grep -q 'equal bytes: yes'
        back b out "$F/flat.onnx"
    done
}

@test "weightless: the source is put together again" {
    ortcrypt encrypt "$F/flat.onnx" -o b -r "$R" --split >/dev/null
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --ep-option weightless=all --weightless >/dev/null
    ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 2 --compare "$F/flat.onnx" | grep -q 'equal bytes: yes'
}

@test "every object of a split bundle counts: a flipped bit is found by run, verify and decrypt alike" {
    ortcrypt encrypt "$F/fold.onnx" -o whole -r "$R" --split >/dev/null
    count=0
    while read -r object; do
        count=$((count + 1))
        for offset in 5 60 $(($(stat -c %s "$object") - 1)); do
            rm -rf b out
            cp -r whole b
            flip "b/${object#whole/}" "$offset"
            fails 3 . verify b -i "$KEY" || run ortcrypt verify b -i "$KEY"
            [ "$status" = 3 ]
            fails 3 . decrypt b -i "$KEY" -o out
            [ ! -e out ]
        done
    done < <(objects whole)
    [ "$count" = 3 ] # model, weights, recipe
    rm -rf b
    cp -r whole b
    flip "$(objects b | head -1)" 1000
    fails 3 . run b -i "$KEY" --random 1
}

@test "python opens a split bundle with age and cryptography alone: the original, byte for byte" {
    command -v age >/dev/null || skip "age is not installed"
    "$PYTHON" -c 'import cryptography.cobblestone' 2>/dev/null || skip "cryptography 50 is not here"
    INTEROP=$ORTCRYPT_SOURCE/tests/vectors/interop
    for model in "$F/fold.onnx" "$MODELS/magika.onnx"; do
        [ -f "$model" ] || continue
        rm -rf b out
        ortcrypt encrypt "$model" -o b -r "$R" --split >/dev/null
        "$PYTHON" "$INTEROP/open_bundle.py" b "$KEY" out >/dev/null
        cmp out/source/x-original "$model"
    done
}
