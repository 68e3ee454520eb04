# The main job on both runtimes: encrypt, compile with the reference EP, run.
load helpers
setup_file() {
    common_setup_file
    make_bundle_file() { "$ORTCRYPT" encrypt "$2" -o "$F/$1" -r "$(cat "$F/recipient")" >/dev/null; }
    make_bundle_file add.ortc "$F/m/add.onnx"
    make_bundle_file ext.ortc "$F/m/ext/good.onnx"
    make_bundle_file types.ortc "$F/m/types.onnx"
    "$PYTHON" - "$F" <<'END'
import sys
import numpy as np
f = sys.argv[1]
np.save(f + "/a.npy", np.arange(8, dtype="<f4").reshape(2, 4))
np.save(f + "/b.npy", np.full((2, 4), 0.5, dtype="<f4"))
END
}
setup() { common_setup; }

# Runs the rest of the command line once for each runtime.
on_both() {
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        echo "on $runtime"
        ORTCRYPT_ORT=$runtime "$@" # not in a condition: errexit must hold inside
    done
}

compile_and_compare() { # MODEL INPUT-OPTIONS...
    local model=$1 bundle
    shift
    bundle=$(mktemp -d)/b
    make_bundle "$bundle" "$model"
    run --separate-stderr ortcrypt compile "$bundle" -i "$KEY" --ep OrtcryptReference --json
    [ "$status" = 0 ] && silent || { echo "$stderr"; return 1; }
    [ "$(jq '.ep_context_nodes > 0 and .blobs == .ep_context_nodes and .verified' <<<"$output")" = true ]
    run --separate-stderr ortcrypt run "$bundle" -i "$KEY" --ep OrtcryptReference --random 1 "$@" --compare "$model" --explain --json
    [ "$status" = 0 ] && silent || { echo "$stderr"; return 1; }
    [ "$(jq '[.outputs[].compare.within] | all' <<<"$output")" = true ]
    [ "$(jq -r '.plan.kind' <<<"$output")" = compiled ]
    [ "$(jq '[.plan.assets[] | select(.role == "ep_context")] | length > 0' <<<"$output")" = true ]
}

@test "real models: compiled and run as encrypted blobs, outputs within 1e-5 of the plaintext model's" {
    [ -f "$MODELS/ppocr_rec.onnx" ] || skip "the models are not here"
    on_both compile_and_compare "$MODELS/ppocr_rec.onnx" --dim x:2=48 --dim x:3=320
    on_both compile_and_compare "$MODELS/ppocr_cls.onnx" --dim x:2=48 --dim x:3=192
    on_both compile_and_compare "$MODELS/ppocr_det.onnx" --dim x:2=64 --dim x:3=64
    on_both compile_and_compare "$MODELS/magika.onnx"
    on_both compile_and_compare "$MODELS/minilm_int8.onnx" --dim batch=1 --dim sequence=16
    on_both compile_and_compare "$MODELS/silero_vad.onnx" --dim input:1=256 # the nodes in its If stay with the CPU EP or not: the outputs tell
}

small_models() {
    compile_and_compare "$F/m/add.onnx" --dim batch=3
    compile_and_compare "$F/m/ext/good.onnx"
}
@test "small models, one with external data" { on_both small_models; }

embedded() {
    local bundle
    bundle=$(mktemp -d)/b
    make_bundle "$bundle"
    run --separate-stderr ortcrypt compile "$bundle" -i "$KEY" --ep OrtcryptReference --embed --json
    [ "$status" = 0 ] || { echo "$stderr"; return 1; }
    [ "$(jq '.blobs == 0 and .ep_context_nodes > 0' <<<"$output")" = true ]
    ortcrypt run "$bundle" -i "$KEY" --ep OrtcryptReference --random 1 --compare "$F/m/add.onnx" | grep -q 'equal bytes: yes'
}
@test "--embed: the blobs are inside the model" { on_both embedded; }

source_variant() {
    ortcrypt run "$F/add.ortc" -i "$KEY" --random 1 --compare "$F/m/add.onnx" | grep -q 'equal bytes: yes'
    ortcrypt run "$F/ext.ortc" -i "$KEY" --random 1 --compare "$F/m/ext/good.onnx" | grep -q 'equal bytes: yes'
}
@test "without --ep the source variant runs on the CPU execution provider" { on_both source_variant; }

@test "the table that compile and run print" {
    make_bundle b
    run --separate-stderr ortcrypt compile b -i "$KEY" --ep OrtcryptReference
    [ "$status" = 0 ]
    silent
    grep -q "$(sha256sum b/manifest | cut -d' ' -f1)" <<<"$output"
    grep -q 'sequence 2' <<<"$output"
    run --separate-stderr ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 3 --dim batch=2 --repeat 5 --explain
    [ "$status" = 0 ]
    silent
    grep -q 'sum: float32\[2, 4\]' <<<"$output"
    grep -Eq 'latency +min [0-9.]+, p50 [0-9.]+, p90 [0-9.]+, p99 [0-9.]+, max [0-9.]+ ms of 5 runs' <<<"$output"
    grep -q 'ep_context ' <<<"$output"
}

@test "--input and --output: .npy in, .npy out, the right values" {
    run --separate-stderr ortcrypt run "$F/add.ortc" -i "$KEY" --input "a=$F/a.npy" --input "b=$F/b.npy" --output out
    [ "$status" = 0 ]
    silent
    [ "$(ls out | sort | paste -sd' ')" = "a_b_c.npy sum.npy" ]
    "$PYTHON" - "$F" <<'END'
import sys
import numpy as np
a, b = np.load(sys.argv[1] + "/a.npy"), np.load(sys.argv[1] + "/b.npy")
total, product = np.load("out/sum.npy"), np.load("out/a_b_c.npy")
assert total.dtype == np.float32 and total.flags.c_contiguous and (total == a + b).all(), total
assert (product == a * b).all(), product
END
    [ "$(ls)" = out ]
}

@test "--output that exists: exit code 6 before anything runs; nothing is touched" {
    mkdir out
    fails 6 'out exists already' run "$F/add.ortc" -i "$KEY" --random 1 --output out
    [ -z "$(ls out)" ]
    fails 6 'no/such/place' run "$F/add.ortc" -i "$KEY" --random 1 --output no/such/place
    [ "$(ls)" = out ]
}

@test "every element type goes through .npy and back, also in Fortran order, empty and as a scalar" {
    "$PYTHON" - <<'END'
import numpy as np
rng = np.random.default_rng(1)
for kind in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8".split():
    np.save(kind + ".npy", np.asfortranarray((rng.standard_normal((5, 3)) * 50).astype("<" + kind)))
np.save("b1.npy", rng.random((5, 3)) < 0.5)
np.save("text.npy", np.array([["a", "ß€😀", ""]] * 5))
np.save("x.npy", np.float32(3.5))
END
    inputs=()
    for kind in f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 b1 text; do
        inputs+=(--input "$kind=$kind.npy")
    done
    ortcrypt run "$F/types.ortc" -i "$KEY" "${inputs[@]}" --output out >/dev/null
    make_bundle scalar "$F/m/scalar.onnx"
    ortcrypt run scalar -i "$KEY" --input x=x.npy --output scalar_out >/dev/null
    "$PYTHON" - <<'END'
import glob
import numpy as np
for path in glob.glob("*.npy"):
    if path == "x.npy":
        continue
    a, b = np.load(path), np.load("out/" + path[:-4] + "_out.npy")
    assert a.shape == b.shape and (a == b).all() and a.dtype.kind == b.dtype.kind and a.dtype == b.dtype, (path, a.dtype, b.dtype)
y = np.load("scalar_out/y.npy")
assert y.shape == () and y == -3.5, y
END
    "$PYTHON" - <<'END'
import numpy as np
for kind in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 b1".split():
    np.save(kind + ".npy", np.zeros((0, 3), dtype=kind))
np.save("text.npy", np.zeros((0, 3), dtype="<U1"))
END
    ortcrypt run "$F/types.ortc" -i "$KEY" "${inputs[@]}" --output empty >/dev/null
    "$PYTHON" -c 'import numpy as np; assert np.load("empty/f4_out.npy").shape == (0, 3)'
}

@test "bfloat16 runs, and is refused clearly where .npy has no such type" {
    make_bundle b "$F/m/bfloat.onnx"
    ortcrypt run b -i "$KEY" --random 1 --compare "$F/m/bfloat.onnx" | grep -q 'equal bytes: yes'
    fails 5 'cannot hold bfloat16' run b -i "$KEY" --random 1 --output out
    [ "$(ls)" = b ]
}

@test "--random: the same seed gives the same values on every run and for every set of inputs" {
    values() { ortcrypt run "$F/add.ortc" -i "$KEY" --output "$1" --dim batch=50 "${@:2}" >/dev/null && sha256sum <"$1/sum.npy"; }
    [ "$(values one --random 5)" = "$(values two --random 5)" ]
    [ "$(values three --random 5)" != "$(values four --random 6)" ]
    "$PYTHON" - <<'END'
import numpy as np
def mix(seed, name, n):                      # the documented generator, in another language
    state = 0xcbf29ce484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001b3 % 2**64
    state ^= seed
    for _ in range(n):
        state = (state + 0x9e3779b97f4a7c15) % 2**64
        v = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 % 2**64
        v = (v ^ v >> 27) * 0x94d049bb133111eb % 2**64
        yield v ^ v >> 31
a, b = (np.array([(v >> 40) / 2**23 - 1 for v in mix(5, n, 200)], dtype=np.float32).reshape(50, 4) for n in "ab")
assert (np.load("one/sum.npy") == a + b).all()
assert a.min() >= -1 and a.max() < 1 and a.std() > 0.4
END
}

@test "--random: small ids, and 0 and 1 for masks and types" {
    make_bundle b "$F/m/masked.onnx"
    ortcrypt run b -i "$KEY" --random 1 --output out --json >json
    "$PYTHON" - <<'END'
import numpy as np
y = np.load("out/y.npy")
assert y.min() >= 0 and y.max() <= 101 and len(set(y.ravel())) > 80
END
}

@test "--dim: by name, by place, inferred from a given input; a name that is none is pointed out" {
    shape() { ortcrypt run "$F/add.ortc" -i "$KEY" --random 1 --json "$@" | jq -c '.outputs[0].shape'; }
    [ "$(shape)" = '[1,4]' ]
    [ "$(shape --dim batch=3)" = '[3,4]' ]
    [ "$(shape --dim a:0=3 --dim b:0=3)" = '[3,4]' ]
    [ "$(shape --input "a=$F/a.npy")" = '[2,4]' ]
    fails 2 '--dim bacth names no dynamic dimension' run "$F/add.ortc" -i "$KEY" --random 1 --dim bacth=3
    grep -q 'hint: dynamic dimensions of this model: batch;' <<<"$stderr"
    fails 2 '--dim batch needs a whole number' run "$F/add.ortc" -i "$KEY" --random 1 --dim batch=x
}

@test "--compare: another model's results end with exit code 1, and the numbers are right" {
    run --separate-stderr ortcrypt run "$F/add.ortc" -i "$KEY" --input "a=$F/a.npy" --input "b=$F/b.npy" --compare "$F/m/sub.onnx" --json
    check_failed 1 "output 'sum' differs"
    # a+b against a-b: the difference is 2*0.5; a-b runs from -0.5 to 6.5
    jq -e '.outputs[0].compare == {equal_bytes: false, within: false, max_abs: 1, range: 7}' <<<"$output"
    jq -e '.outputs[1].compare | .equal_bytes and .within and .max_abs == 0' <<<"$output"
    fails 1 'is another model' run "$F/add.ortc" -i "$KEY" --random 1 --compare "$F/m/scalar.onnx"
    fails 6 'gone.onnx' run "$F/add.ortc" -i "$KEY" --random 1 --compare gone.onnx
}

@test "compile -o: the old bundle stays as it is" {
    make_bundle b
    before=$(state_of b)
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference -o c --variant named >/dev/null
    [ "$(state_of b)" = "$before" ]
    [ "$(ortcrypt inspect c -i "$KEY" --json | jq -c '[.variants[].id]')" = '["source","named"]' ]
    ortcrypt run c -i "$KEY" --ep OrtcryptReference --random 1 --compare "$F/m/add.onnx" >/dev/null
    fails 6 'c' compile b -i "$KEY" --ep OrtcryptReference -o c
}

@test "variants: two in one bundle, chosen by name; one that is not there" {
    make_bundle b
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant one >/dev/null
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant two --embed >/dev/null
    [ "$(ortcrypt run b -i "$KEY" --ep OrtcryptReference --variant one --random 1 --explain --json | jq -r .plan.variant)" = one ]
    [ "$(ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 --explain --json | jq -r .plan.variant)" = two ]
    ortcrypt run b -i "$KEY" --variant source --random 1 >/dev/null
    fails 1 'three' run b -i "$KEY" --ep OrtcryptReference --variant three --random 1
    fails 6 'one' compile b -i "$KEY" --ep OrtcryptReference --variant one
    fails 2 'variant' compile b -i "$KEY" --ep OrtcryptReference --variant 'a/b'
}

@test "weights of their own: --initializer-min" {
    [ -f "$MODELS/ppocr_cls.onnx" ] || skip "the model is not here"
    make_bundle b "$F/m/ext/good.onnx"
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --initializer-min 1 --json >/dev/null
    ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 --compare "$F/m/ext/good.onnx" >/dev/null
}

@test "keys: file, standard input, descriptor, environment, ORTCRYPT_IDENTITY, several of them" {
    look() { ortcrypt run "$F/add.ortc" --random 1 "$@" >/dev/null; }
    look -i "$KEY"
    look -i - <"$KEY"
    look -i fd:7 7<"$KEY"
    SECRET=$(cat "$KEY") look -i env:SECRET
    ORTCRYPT_IDENTITY=$KEY look
    look -i "$F/other.txt" -i "$KEY"
    look --identity-command "age -d -i '$KEY'"
    fails 4 'no key was given' run "$F/add.ortc" --random 1
    fails 4 'NOT_SET is not set' run "$F/add.ortc" --random 1 -i env:NOT_SET
    fails 2 'number of a descriptor' run "$F/add.ortc" --random 1 -i fd:x
    fails 6 'gone.txt' run "$F/add.ortc" --random 1 -i gone.txt
    ORTCRYPT_IDENTITY=gone.txt fails 6 'gone.txt' run "$F/add.ortc" --random 1
}

@test "a secret key among the arguments is refused and not repeated" {
    secret=$(grep AGE- "$KEY")
    fails 2 'seen by every process' run "$F/add.ortc" --random 1 -i "$secret"
    refute grep -q "$secret" <<<"$stderr"
}

@test "a secret in the environment is gone before the runtime is loaded" {
    # The runtime "library" is a FIFO's neighbour: the loader runs our constructor, which looks at the process's own environment.
    command -v cc >/dev/null || skip "no C compiler here"
    cat >spy.c <<'END'
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void spy(void)
{
    char buffer[65536];
    int from = open("/proc/self/environ", O_RDONLY), to = open("environ.seen", O_WRONLY | O_CREAT, 0600);
    ssize_t len;
    while ((len = read(from, buffer, sizeof buffer)) > 0) {
        if (write(to, buffer, (size_t)len) != len) _exit(99);
    }
}
END
    cc -shared -fPIC -o spy.so spy.c
    export SECRET
    SECRET=$(cat "$KEY")
    run ortcrypt run "$F/add.ortc" --random 1 -i env:SECRET --ort ./spy.so --no-sandbox # the spy writes a file
    [ -s environ.seen ]
    refute grep -aq AGE-SECRET-KEY environ.seen
    tr '\0' '\n' <environ.seen | grep -q '^HOME='
}

@test "pins: the id, the manifest and the sequence that are demanded" {
    make_bundle b
    id=$(ortcrypt inspect b -i "$KEY" --json | jq -r .bundle_id)
    pin=$(sha256sum b/manifest | cut -d' ' -f1)
    ortcrypt run b -i "$KEY" --random 1 --bundle-id "$id" --pin "$pin" --min-sequence 1 >/dev/null
    fails 3 'pin' run b -i "$KEY" --random 1 --pin "$(printf '%064d' 0)"
    fails 3 'id' run b -i "$KEY" --random 1 --bundle-id "$(printf '%032d' 0)"
    fails 3 'sequence' run b -i "$KEY" --random 1 --min-sequence 2
    fails 2 'pin' run b -i "$KEY" --random 1 --pin 123
    fails 3 'pin' compile b -i "$KEY" --ep OrtcryptReference --pin "$(printf '%064d' 0)"
    fails 3 'sequence' decrypt b -i "$KEY" -o d --min-sequence 2
    fails 3 'id' verify b -i "$KEY" --bundle-id "$(printf '%032d' 0)"
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --pin "$pin" >/dev/null
    ortcrypt run b -i "$KEY" --random 1 --min-sequence 2 >/dev/null
}

leaves_nothing() { # RUNTIME
    make_bundle b
    ORTCRYPT_ORT=$1
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference >/dev/null
    before=$(state_of b)
    ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 >/dev/null
    [ "$(state_of b)" = "$before" ]
    [ "$(ls)" = b ]
    [ -z "$(find "$HOME" "$TMPDIR" -type f)" ]
    rm -r b
}
@test "running leaves nothing behind: not in the bundle, the working folder, HOME or TMPDIR" {
    leaves_nothing "$OLD_RUNTIME"
    leaves_nothing "$NEW_RUNTIME"
}

@test "the reference EP by its library's path, and options that an EP does not have" {
    make_bundle b
    ortcrypt compile b -i "$KEY" --ep "OrtcryptReference=$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" >/dev/null
    fails 2 '--ep needs NAME' compile b -i "$KEY" --ep OrtcryptReference=
    fails 1 'has no device of the execution provider NoSuchProvider' compile b -i "$KEY" --ep NoSuchProvider
    grep -q 'hint' <<<"$stderr"
}

@test "--verbose shows ONNX Runtime's own lines, otherwise there are none" {
    run --separate-stderr ortcrypt run "$F/add.ortc" -i "$KEY" --input "a=$F/a.npy" --input "b=$F/b.npy" --compare "$F/m/text.onnx"
    check_failed 1 'text.onnx'
    [ "$(grep -c . <<<"$stderr")" -le 2 ]
}

# A transposed constant: the optimizer folds it from 'basic' on, and the engine has a node less.
optimized() {
    local model=$ORTCRYPT_DEPS/testmodels/fold_transpose/fold_transpose.onnx
    make_bundle "$1" "$model"
    for level in default none basic extended all; do
        local option="--optimize $level"
        [ $level != default ] || option=
        ortcrypt compile "$1" -i "$KEY" --ep OrtcryptReference --variant $level $option --json >$level.json
        ortcrypt run "$1" -i "$KEY" --ep OrtcryptReference --variant $level --random 1 --compare "$model" >/dev/null
    done
    # default and none keep the Transpose; the others do not
    jq -es '(map(.blob_bytes)) as [$default, $none, $basic, $extended, $all] | $default == $none and $basic < $none and $extended == $basic and $all == $basic' \
        default.json none.json basic.json extended.json all.json
}
@test "--optimize: what the optimizer does before the execution provider sees the graph" {
    ORTCRYPT_ORT=$OLD_RUNTIME optimized old
    ORTCRYPT_ORT=$NEW_RUNTIME optimized new
    fails 2 "optimize" compile new -i "$KEY" --ep OrtcryptReference --optimize most
}
