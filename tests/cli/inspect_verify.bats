# Looking at bundles, and finding damage.
load helpers
setup_file() {
    common_setup_file
    echo '{"a": 1}' >"$F/tokenizer.json"
    ORTCRYPT_ORT=$NEW_RUNTIME
    export ORTCRYPT_ORT
    "$ORTCRYPT" encrypt "$F/m/ext/good.onnx" -o "$F/good.ortc" -r "$(cat "$F/recipient")" --extra "$F/tokenizer.json" --label stage=test >/dev/null
}
setup() {
    common_setup
    cp -r "$F/good.ortc" b
}

@test "inspect without a key: what anybody sees, and no more" {
    run --separate-stderr ortcrypt inspect b
    [ "$status" = 0 ]
    silent
    grep -q 'X25519' <<<"$output"
    grep -q "$(sha256sum b/manifest | cut -d' ' -f1)" <<<"$output"
    refute grep -q 'weights\|tokenizer\|stage\|age1' <<<"$output"
    run --separate-stderr ortcrypt inspect b --json
    [ "$(jq -r '.objects.count' <<<"$output")" = 3 ]
    [ "$(jq -r 'has("variants")' <<<"$output")" = false ]
}

@test "inspect with a key: files, roles, sizes, recipients, labels" {
    run --separate-stderr ortcrypt inspect b -i "$KEY"
    [ "$status" = 0 ]
    silent
    grep -Eq 'external +16.2 KiB +weights.bin' <<<"$output"
    grep -Eq 'extra +9 bytes +tokenizer.json' <<<"$output"
    grep -q "$R" <<<"$output"
    grep -q 'stage = test' <<<"$output"
    run --separate-stderr ortcrypt inspect b -i "$KEY" --json
    [ "$(jq -r '.variants[0].kind' <<<"$output")" = source ]
    [ "$(jq -r '.sequence' <<<"$output")" = 1 ]
}

@test "inspect shows names with control bytes harmlessly" {
    printf x >$'esc\033[31m.txt'
    ortcrypt encrypt "$F/m/add.onnx" -o c -r "$R" --extra $'esc\033[31m.txt' >/dev/null
    run ortcrypt inspect c -i "$KEY"
    [ "$status" = 0 ]
    refute grep -q $'\033' <<<"$output"
    [ "$(ortcrypt inspect c -i "$KEY" --json | jq -r '.variants[0].parts[] | select(.role == "extra") | .name')" = $'esc\033[31m.txt' ]
}

@test "verify: intact without a key, authentic with one" {
    run --separate-stderr ortcrypt verify b
    [ "$status" = 0 ]
    silent
    grep -q 'intact$' <<<"$output"
    grep -q 'no key' <<<"$output"
    run --separate-stderr ortcrypt verify b -i "$KEY"
    [ "$status" = 0 ]
    grep -q 'authentic$' <<<"$output"
    run --separate-stderr ortcrypt verify b -i "$KEY" --json
    [ "$(jq -c '[.with_key, .status, .checked.assets, (.damaged | length)]' <<<"$output")" = '[true,"ok",3,0]' ]
}

@test "one flipped bit in an object: found by verify, run and decrypt; the damage is named" {
    object=$(objects b | head -1)
    flip "$object"
    run --separate-stderr ortcrypt verify b
    check_failed 3 .
    run --separate-stderr ortcrypt verify b -i "$KEY"
    check_failed 3 .
    grep -q 'external weights.bin' <<<"$output"
    run --separate-stderr ortcrypt verify b -i "$KEY" --json
    check_failed 3 .
    [ "$(jq -r '.damaged[0].parts[0].name' <<<"$output")" = weights.bin ]
    fails 3 . run b -i "$KEY" --random 1
    fails 3 . decrypt b -i "$KEY" -o d
    [ ! -e d ]
    fails 3 . compile b -i "$KEY" --ep OrtcryptReference
}

@test "every damaged object is listed" {
    for object in $(objects b); do flip "$object"; done
    run --separate-stderr ortcrypt verify b -i "$KEY" --json
    check_failed 3 '2 more'
    [ "$(jq '.damaged | length' <<<"$output")" = 3 ]
}

@test "one flipped bit in the manifest, the key file, FORMAT" {
    flip b/manifest
    mv b/keys/*.age "b/keys/$(sha256sum b/manifest | cut -d' ' -f1).age" # as one would who knows the layout
    fails 3 'manifest' verify b -i "$KEY"
    rm -r b
    cp -r "$F/good.ortc" b
    flip b/manifest
    fails 3 . verify b -i "$KEY"
    rm -r b
    cp -r "$F/good.ortc" b
    flip b/keys/*.age
    run --separate-stderr ortcrypt verify b -i "$KEY"
    [ "$status" = 3 ] || [ "$status" = 4 ] || [ "$status" = 5 ]
    check_failed "$status" .
    rm -r b
    cp -r "$F/good.ortc" b
    flip b/FORMAT 0
    fails 5 . verify b -i "$KEY"
}

@test "cut, lengthened, deleted, swapped objects" {
    object=$(objects b | head -1)
    second=$(objects b | sed -n 2p)
    truncate -s -1 "$object"
    fails_one_of verify b
    cp "$F/good.ortc/${object#b/}" "$object"
    ortcrypt verify b -i "$KEY" >/dev/null
    printf x >>"$object"
    fails_one_of verify b
    cp "$F/good.ortc/${object#b/}" "$object"
    cp "$second" "$object"
    fails_one_of verify b
    rm "$object"
    fails_one_of verify b
    mkdir "$object"
    fails_one_of verify b
    rmdir "$object"
    mkfifo "$object"
    fails_one_of verify b
    rm "$object"
    ln -s "$PWD/$second" "$object"
    fails_one_of verify b
    rm "$object"
    ln -s "$F/good.ortc/${object#b/}" "$object"
    ortcrypt verify b -i "$KEY" >/dev/null # a link to the right bytes
}
fails_one_of() { # exit code 3 or 6, one error line; within a minute
    run --separate-stderr timeout 60 "$ORTCRYPT" "$@" -i "$KEY"
    [ "$status" = 3 ] || [ "$status" = 6 ] || { echo "exit code $status: $stderr"; return 1; }
    check_failed "$status" .
}

@test "objects of another bundle of the same key, and an older manifest, are not taken" {
    ortcrypt encrypt "$F/m/ext/good.onnx" -o c -r "$R" >/dev/null
    cp "$(objects c | head -1)" "$(objects b | head -1)"
    fails_one_of verify b
    rm -r b
    cp -r "$F/good.ortc" b
    old=$(sha256sum b/manifest | cut -d' ' -f1)
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference >/dev/null
    pin=$(sha256sum b/manifest | cut -d' ' -f1)
    ortcrypt verify b -i "$KEY" --min-sequence 2 --pin "$pin" >/dev/null
    cp "$F/good.ortc/manifest" b/manifest
    cp "$F/good.ortc/keys/$old.age" b/keys/
    run --separate-stderr ortcrypt verify b -i "$KEY" --min-sequence 2
    check_failed 3 'sequence|older'
    run --separate-stderr ortcrypt verify b -i "$KEY" --pin "$pin"
    check_failed 3 'pin'
}
