# How large weights reach ONNX Runtime, as --explain tells, inside the sandbox of the command line.
load helpers
setup_file() {
    common_setup_file
    make_big_bundles 32
}
setup() { common_setup; }

# route KIND ROLE OPTION...: of the asset with that role, its outputs compared.
route() {
    local kind=$1 role=$2
    shift 2
    ortcrypt run "$F/$kind.ortc" -i "$KEY" --random 1 --compare "$F/$kind/model.onnx" --explain --json "$@" |
        jq -r --arg role "$role" '.plan.assets[] | select(.role == $role) | .route'
}

need_userfaultfd() {
    "$PYTHON" -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 0o2000001) < 0)' || skip "userfaultfd is denied here"
}

@test "external weights are decrypted as they are read" {
    need_userfaultfd
    [ "$(route external external)" = "files-in-memory, used directly, decrypted as read" ]
    export ORTCRYPT_ORT=$OLD_RUNTIME
    [ "$(route external external)" = "initializers, decrypted as read" ]
}

@test "lazy, and why not" {
    need_userfaultfd
    [ "$(route external external --lazy)" = "files-in-memory, used directly, lazy" ]
    export ORTCRYPT_ORT=$OLD_RUNTIME
    ortcrypt run "$F/external.ortc" -i "$KEY" --random 1 --lazy --explain | grep -q 'not lazy: this runtime copies'
}

@test "large weights in a model are decrypted as they are read" {
    need_userfaultfd
    [ "$(route embedded model)" = "array, its weights as initializers, decrypted as read" ]
    export ORTCRYPT_ORT=$OLD_RUNTIME
    [ "$(route embedded model)" = "array, its weights as initializers, decrypted as read" ]
}

@test "an altered piece of weights is exit code 3 on every route" {
    cp -r "$F/external.ortc" b
    object=$(find b/objects -type f -size +1M)
    "$PYTHON" -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(20000000); b = f.read(1)[0]; f.seek(20000000); f.write(bytes([b ^ 1]))' "$object"
    fails 3 'altered' run b -i "$KEY" --random 1
    ORTCRYPT_ORT=$OLD_RUNTIME fails 3 'altered' run b -i "$KEY" --random 1
    cp -r "$F/embedded.ortc" inside
    flip "$(objects inside | head -1)" 20000000
    fails 3 'altered' run inside -i "$KEY" --random 1
    ORTCRYPT_ORT=$OLD_RUNTIME fails 3 'altered' run inside -i "$KEY" --random 1
}
