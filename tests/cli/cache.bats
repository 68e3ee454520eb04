# Compiling just in time: once, outside the bundle, for this machine alone; and several variants in one bundle.
load helpers
setup_file() {
    common_setup_file
    "$ORTCRYPT" encrypt "$F/m/ext/good.onnx" -o "$F/b" -r "$(cat "$F/recipient")" >/dev/null
}
setup() {
    common_setup
    cp -r "$F/b" b
    unset XDG_DATA_HOME
    CACHE=$HOME/.cache/ortcrypt
    MACHINE_KEY=$HOME/.local/share/ortcrypt/machine.key
}
teardown() { common_teardown; }

# go FROM ARGUMENTS...: runs the bundle b with the reference EP; the outputs are the plaintext model's, the variant came FROM there.
go() {
    local from=$1
    shift
    run --separate-stderr ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 --compare "$F/m/ext/good.onnx" --explain --json "$@"
    [ "$status" = 0 ] || { echo "$stderr"; return 1; }
    [ "$(jq -r '"\(.plan.from) \(.plan.kind) \([.outputs[].compare.within] | all)"' <<<"$output")" = "$from true" ] || { echo "$output$stderr"; return 1; }
}
quiet() { silent || { echo "on standard error: $stderr"; return 1; }; }
entries() { find "${1:-$CACHE}" -mindepth 2 -maxdepth 2 -type d -name '????????????????????????????????????????????????????????????????' | wc -l; }
entry() { echo "$CACHE/$(ortcrypt inspect b -i "$KEY" --json | jq -r .bundle_id)/$(sha256sum b/manifest | cut -d' ' -f1)"; }

once() {
    rm -rf "$CACHE"
    go "cache compiled"
    quiet
    [ "$(entries)" = 1 ]
    [ -s "$(entry)/manifest" ]
    local made
    made=$(sha256sum "$(entry)/manifest")
    go "cache compiled"
    quiet
    [ "$(sha256sum "$(entry)/manifest")" = "$made" ]
}
@test "compiled once, loaded from the cache the next time; the bundle is not touched" {
    before=$(state_of b)
    for runtime in "$OLD_RUNTIME" "$NEW_RUNTIME"; do
        ORTCRYPT_ORT=$runtime once
    done
    [ "$(state_of b)" = "$before" ]
    [ "$(stat -c %a "$MACHINE_KEY")" = 600 ]
    [ "$(stat -c %s "$MACHINE_KEY")" = 32 ]
    [ "$(stat -c %a "$CACHE")" = 700 ]
    [ -z "$(find "$CACHE" -name '*.age')" ] # no key beside what it opens
}

@test "both runtimes in turn keep their own variants in one entry" {
    ORTCRYPT_ORT=$OLD_RUNTIME go "cache compiled"
    ORTCRYPT_ORT=$NEW_RUNTIME go "cache compiled"
    before=$(state_of "$(entry)/objects")
    ORTCRYPT_ORT=$OLD_RUNTIME go "cache compiled"
    ORTCRYPT_ORT=$NEW_RUNTIME go "cache compiled"
    quiet
    [ "$(state_of "$(entry)/objects")" = "$before" ]
    [ "$(entries)" = 1 ]
}

@test "no plaintext of the model in the cache" {
    go "cache compiled"
    "$ORTCRYPT_BUILD/find_plaintext" "$F"/m/ext/good.onnx "$F"/m/ext/*.bin -- "$CACHE"
}

@test "XDG_CACHE_HOME, XDG_DATA_HOME, --cache, --machine-key: where things are" {
    XDG_CACHE_HOME=$T/xc XDG_DATA_HOME=$T/xd go "cache compiled"
    [ "$(entries "$T/xc/ortcrypt")" = 1 ]
    [ -s "$T/xd/ortcrypt/machine.key" ]
    go "cache compiled" --cache "$T/other place/c" --machine-key "$T/k/m.key"
    [ "$(entries "$T/other place/c")" = 1 ]
    [ -s "$T/k/m.key" ]
    [ ! -e "$CACHE" ]
    [ ! -e "$MACHINE_KEY" ]
    XDG_CACHE_HOME=relative go "cache compiled" # not absolute: as if not set
    [ ! -e relative ]
    [ "$(entries)" = 1 ]
}

@test "--no-cache: nothing is compiled just in time; the source can be, in memory" {
    fails 1 'has no variant that OrtcryptReference can run here' run b -i "$KEY" --ep OrtcryptReference --random 1 --no-cache
    go "bundle source" --no-cache --variant source
    [ ! -e "$HOME/.cache" ]
    [ ! -e "$HOME/.local" ]
    fails 2 'excludes' run b -i "$KEY" --ep OrtcryptReference --random 1 --no-cache --cache c
}

@test "without a HOME" {
    env -u HOME "$ORTCRYPT" run b -i "$KEY" --random 1 >/dev/null
    run --separate-stderr env -u HOME "$ORTCRYPT" run b -i "$KEY" --ep OrtcryptReference --random 1
    check_failed 1 'has no variant'
    run --separate-stderr env -u HOME "$ORTCRYPT" run b -i "$KEY" --ep OrtcryptReference --random 1 --cache c
    check_failed 2 'needs a folder and a machine key'
}

@test "a bundle on read-only media" {
    mkdir place
    mv b place/b
    mount --bind place place 2>/dev/null || skip "nothing can be mounted here"
    unmount_later "$T/w/place"
    mount -o remount,ro,bind place || skip "nothing can be mounted read-only here"
    ln -s place/b b
    go "cache compiled"
    go "cache compiled"
    quiet
    # and with the cache there too: in memory, and it says so
    go "bundle source" --cache place/cache
    grep -q 'compiled in memory, and nothing is kept: .*Read-only' <<<"$stderr"
}

@test "planted: made with the bundle's key on another machine" {
    go "cache compiled" --machine-key "$T/theirs.key" # the same bundle, another machine's key
    go "cache compiled"
    grep -q 'is ignored, and compiled again' <<<"$stderr"
    go "cache compiled"
    quiet
}

@test "replayed: what was kept of an older state of the bundle" {
    go "cache compiled"
    cp -r "$(entry)" old
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant new --no-load-check >/dev/null
    mkdir -p "$(dirname "$(entry)")"
    mv old "$(entry)"
    # the bundle's own variant fits now; that the entry is not taken shows where the execution provider wants another
    ORTCRYPT_ORT=$OLD_RUNTIME go "cache compiled"
    grep -q 'is ignored, and compiled again: .*another state of the bundle' <<<"$stderr"
}

@test "damaged and foreign entries" {
    go "cache compiled"
    flip "$(entry)/manifest"
    go "cache compiled"
    grep -q 'is ignored, and compiled again: .*/manifest' <<<"$stderr"
    flip "$(objects "$(entry)" | head -1)"
    go "cache compiled"
    grep -q 'is ignored, and compiled again: ' <<<"$stderr"
    rm -rf "$(entry)"/*
    echo foreign >"$(entry)/file"
    go "cache compiled"
    grep -q 'is ignored, and compiled again: .*not a bundle' <<<"$stderr"
    go "cache compiled"
    quiet
}

@test "a machine key that others may read, or that is none, is refused" {
    go "cache compiled"
    chmod 644 "$MACHINE_KEY"
    fails 4 'machine key .* is not used: other users' run b -i "$KEY" --ep OrtcryptReference --random 1
    rm "$MACHINE_KEY"
    echo short >"$MACHINE_KEY"
    chmod 600 "$MACHINE_KEY"
    fails 4 'machine key .* is not used: a machine key is 32 bytes' run b -i "$KEY" --ep OrtcryptReference --random 1
}

@test "--cache-max: the one unused for longest goes, other files stay" {
    go "cache compiled"
    first=$(entry)
    echo mine >"$CACHE/mine"
    mkdir "$(dirname "$first")/folder"
    mv b one
    make_bundle b "$F/m/ext/good.onnx"
    touch -d 2001-01-01 "$first"
    go "cache compiled" --cache-max $(($(find "$first" -type f -printf '%s + ') 100))
    [ ! -e "$first" ]
    [ "$(entries)" = 1 ]
    rm -r b
    make_bundle b "$F/m/ext/good.onnx"
    ln -s "$CACHE" link
    go "cache compiled" --cache link --cache-max 1 # too large by itself: used, then gone
    [ "$(entries)" = 0 ]
    [ -e "$CACHE/mine" ]
    [ -d "$(dirname "$first")/folder" ]
}

@test "two processes at once make one entry" {
    for i in 1 2; do
        ortcrypt run b -i "$KEY" --ep OrtcryptReference --random 1 --explain >"out$i" 2>"err$i" &
    done
    wait
    grep -q 'from the cache' out1
    grep -q 'from the cache' out2
    [ ! -s err1 ]
    [ ! -s err2 ]
    [ "$(entries)" = 1 ]
}

@test "a killed compilation leaves nothing that lasts" {
    timeout -s KILL 0.05 "$ORTCRYPT" run b -i "$KEY" --ep OrtcryptReference --random 1 >/dev/null 2>&1 || true
    go "cache compiled"
    mkdir -p "$(entry).tmp-0011aabb/objects" "$(dirname "$(entry)")/removed-0011223344556677"
    rm -rf "$(entry)"
    go "cache compiled"
    [ "$(ls "$(dirname "$(entry)")" | wc -l)" = 2 ] # the entry and the lock
}

@test "several variants in one bundle: inspect lists them, --variant takes one" {
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant whole >/dev/null
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant small --ep-option max_nodes_per_engine=1 >/dev/null
    run --separate-stderr ortcrypt inspect b -i "$KEY" --json
    [ "$(jq -r '[.variants[].id] | join(" ")' <<<"$output")" = "source whole small" ]
    blob='.parts[] | select(.role == "ep_context" and (.name | endswith("_0.bin")))'
    [ "$(jq "[.variants[] | select(.kind == \"compiled\") | $blob | .name] | unique | length" <<<"$output")" = 1 ]
    [ "$(jq "[.variants[] | select(.kind == \"compiled\") | $blob | .asset] | unique | length" <<<"$output")" = 2 ]
    ortcrypt inspect b -i "$KEY" | grep -q 'max_nodes_per_engine = 1'
    for variant in whole small; do
        go "bundle compiled" --variant "$variant"
        [ "$(jq -r .plan.variant <<<"$output")" = "$variant" ]
    done
    go "bundle compiled"
    [ "$(jq -r .plan.variant <<<"$output")" = small ] # the newest
    fails 1 'has no variant other' run b -i "$KEY" --ep OrtcryptReference --random 1 --variant other
}

@test "a variant of a newer runtime: without a cache the older one says to compile again, with one it does" {
    ORTCRYPT_ORT=$NEW_RUNTIME ortcrypt compile b -i "$KEY" --ep OrtcryptReference --variant new >/dev/null
    export ORTCRYPT_ORT=$OLD_RUNTIME
    fails 1 'does not load this model' run b -i "$KEY" --ep OrtcryptReference --random 1 --no-cache
    grep -q 'hint: variant new was made by OrtcryptReference .* compile the model again here' <<<"$stderr"
    go "cache compiled"
    grep -q 'variant new works, but OrtcryptReference would rather have it compiled again' <<<"$stderr"
}
