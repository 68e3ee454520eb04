# Everything that comes from outside and is wrong: the exit code, and exactly one line that says which file and why.
load helpers
setup_file() {
    common_setup_file
    "$ORTCRYPT" encrypt "$F/m/add.onnx" -o "$F/good.ortc" -r "$(cat "$F/recipient")" >/dev/null
}
setup() {
    common_setup
    cp -r "$F/good.ortc" b
}
teardown() { common_teardown; }

# Everything that opens a bundle; $1 exit code, $2 pattern, $3 bundle, $4 key file.
every_verb_fails() {
    fails "$1" "$2" inspect "$3" -i "$4"
    fails "$1" "$2" verify "$3" -i "$4"
    fails "$1" "$2" run "$3" -i "$4" --random 1
    fails "$1" "$2" decrypt "$3" -i "$4" -o out
    fails "$1" "$2" compile "$3" -i "$4" --ep OrtcryptReference
    [ ! -e out ]
}

@test "not a bundle: a model, an empty folder, a folder with other things" {
    mkdir empty other
    echo x >other/FORMAT
    every_verb_fails 5 'empty' empty "$KEY"
    every_verb_fails 5 'other' other "$KEY"
    cp "$F/m/add.onnx" model.onnx
    fails 5 'model.onnx' inspect model.onnx
    fails 5 'model.onnx' run model.onnx -i "$KEY" --random 1
}

@test "nothing there at all" {
    every_verb_fails 6 'gone.ortc' gone.ortc "$KEY"
}

@test "a newer format" {
    echo ortcrypt/2 >b/FORMAT
    every_verb_fails 5 'ortcrypt/2' b "$KEY"
    fails 5 'ortcrypt/2' inspect b
}

@test "truncated: manifest, key file, FORMAT, object" {
    truncate -s -1 b/manifest
    every_verb_fails 3 'manifest|key' b "$KEY"
    rm -r b
    cp -r "$F/good.ortc" b
    truncate -s 0 b/manifest
    every_verb_fails 3 'manifest' b "$KEY"
    rm -r b
    cp -r "$F/good.ortc" b
    key=$(ls b/keys/*.age)
    truncate -s 100 "$key"
    every_verb_fails 5 "${key##*/}" b "$KEY"
    rm -r b
    cp -r "$F/good.ortc" b
    truncate -s -1 "$(objects b | head -1)"
    fails 3 'cut' run b -i "$KEY" --random 1
    fails 3 'cut' decrypt b -i "$KEY" -o out
    [ ! -e out ]
}

@test "the wrong key; no key; a file that is no key; a key that is a folder" {
    every_verb_fails 4 'key' b "$F/other.txt"
    fails 4 'no key was given' run b --random 1
    echo nonsense >text.txt
    every_verb_fails 1 'text.txt' b text.txt
    mkdir folder
    fails 6 'folder' inspect b -i folder || fails 1 'folder' inspect b -i folder
    : >empty.txt
    fails 4 . inspect b -i empty.txt || fails 1 'empty.txt' inspect b -i empty.txt
    fails 4 . run b --random 1 --passphrase-fd 3 3<<<'no passphrase opens this'
}

@test "a model that is no ONNX: a text, a Git LFS pointer, half a model, nothing, a folder, a FIFO" {
    fails 1 'text.onnx' encrypt "$F/m/text.onnx" -o c -r "$R"
    fails 1 'lfs.onnx.*LFS' encrypt "$F/m/lfs.onnx" -o c -r "$R"
    fails 1 'cut.onnx' encrypt "$F/m/cut.onnx" -o c -r "$R"
    fails 1 'empty.onnx' encrypt "$F/m/empty.onnx" -o c -r "$R"
    fails 1 'm' encrypt "$F/m" -o c -r "$R"
    mkfifo fifo.onnx
    run --separate-stderr timeout 20 "$ORTCRYPT" encrypt fifo.onnx -o c -r "$R"
    check_failed 1 'fifo.onnx'
    fails 6 'gone.onnx' encrypt gone.onnx -o c -r "$R"
    [ "$(ls)" = "$(printf 'b\nfifo.onnx')" ]
}

@test "external data: missing, too short, a Git LFS pointer, overlapping, outside the folder, absolute" {
    fails 6 'gone.bin' encrypt "$F/m/ext/missing.onnx" -o c -r "$R"
    fails 1 'weights.bin' encrypt "$F/m/ext/short.onnx" -o c -r "$R"
    fails 1 'lfs.bin.*LFS' encrypt "$F/m/ext/lfs.onnx" -o c -r "$R"
    fails 1 'overlap' encrypt "$F/m/ext/overlap.onnx" -o c -r "$R"
    fails 1 'outside.bin' encrypt "$F/m/ext/outside.onnx" -o c -r "$R"
    fails 1 'passwd' encrypt "$F/m/ext/absolute.onnx" -o c -r "$R"
    [ "$(ls)" = b ]
}

@test "a symbolic link among the inputs is followed, as in hub caches; one that leads nowhere is named" {
    mkdir blobs snapshot
    cp "$F/m/ext/good.onnx" blobs/1
    cp "$F/m/ext/weights.bin" blobs/2
    ln -s ../blobs/1 snapshot/model.onnx
    ln -s ../blobs/2 snapshot/weights.bin
    ortcrypt encrypt snapshot/model.onnx -o c -r "$R" >/dev/null
    ortcrypt run c -i "$KEY" --random 1 --compare "$F/m/ext/good.onnx" | grep -q 'equal bytes: yes'
    fails 6 'model gone.onnx cannot be opened' run c -i "$KEY" --random 1 --compare gone.onnx
    rm blobs/2
    fails 6 'weights.bin' encrypt snapshot/model.onnx -o d -r "$R"
    ln -sf ../../b/keys c/broken
    ln -s loop loop
    fails 6 'loop' encrypt loop -o d -r "$R"
}

@test "a name that is not UTF-8: said with the bytes replaced, in JSON too" {
    cp "$F/m/add.onnx" $'caf\xe9.onnx'
    echo x >$'extra\xff.txt'
    fails 1 'UTF-8' encrypt "$F/m/add.onnx" -o c -r "$R" --extra $'extra\xff.txt' ||
        fails 2 'UTF-8' encrypt "$F/m/add.onnx" -o c -r "$R" --extra $'extra\xff.txt'
    [ ! -e c ]
    fails 2 'UTF-8|label' encrypt "$F/m/add.onnx" -o c -r "$R" --label $'k=\xff' || fails 1 'UTF-8|label' encrypt "$F/m/add.onnx" -o c -r "$R" --label $'k=\xff'
    [ ! -e c ]
    run --separate-stderr ortcrypt encrypt $'gone\xe9.onnx' -o c -r "$R" --json
    check_failed 6 'gone\?.onnx'
    jq -e '.error.message' <<<"$output" >/dev/null
    run --separate-stderr ortcrypt encrypt $'caf\xe9.onnx' -o c -r "$R"
    if [ "$status" != 0 ]; then check_failed "$status" 'UTF-8'; fi
}

@test "outputs that exist are never overwritten: exit code 6" {
    fails 6 'b' encrypt "$F/m/add.onnx" -o b -r "$R"
    cmp b/manifest "$F/good.ortc/manifest"
    : >file
    ln -s nowhere link
    mkdir out
    for there in file link out; do
        fails 6 "$there" encrypt "$F/m/add.onnx" -o "$there" -r "$R"
        fails 6 "$there" compile b -i "$KEY" --ep OrtcryptReference -o "$there"
        fails 6 "$there" decrypt b -i "$KEY" -o "$there"
        fails 6 "$there" run b -i "$KEY" --random 1 --output "$there"
    done
    [ ! -s file ]
    [ ! -e nowhere ]
    [ -z "$(ls out)" ]
    [ "$(ls | paste -sd' ')" = "b file link out" ]
}

@test "a full disk: exit code 6, the bundle as it was, nothing left behind" {
    mkdir small
    mount -t tmpfs -o size=256k,nr_inodes=64 tmpfs small 2>/dev/null || skip "no file system can be mounted here"
    unmount_later "$T/w/small"
    head -c 300000 /dev/urandom >big.bin
    fails 6 'No space left' encrypt "$F/m/add.onnx" -o small/c -r "$R" --extra big.bin
    [ -z "$(ls -A small)" ]
    ortcrypt encrypt "$F/m/add.onnx" -o small/c -r "$R" >/dev/null
    head -c 300000 /dev/zero >small/fill 2>/dev/null || true
    before=$(state_of small/c)
    fails 6 'No space left' compile small/c -i "$KEY" --ep OrtcryptReference
    [ "$(cd small/c && sha256sum manifest)" = "$(grep ' manifest\| ./manifest' <<<"$before" | sed 's|\./||')" ]
    ortcrypt verify small/c -i "$KEY" >/dev/null
    fails 6 'No space left' decrypt small/c -i "$KEY" -o small/out
    fails 6 'No space left' keygen -o small/key.txt
    fails 6 'No space left' run small/c -i "$KEY" --random 1 --dim batch=100 --output small/npy
    [ "$(ls -A small | paste -sd' ')" = "c fill" ]
}

@test "a read-only place: exit code 6; reading from there works" {
    mkdir place
    cp -r b place/b
    mount --bind place place 2>/dev/null || skip "nothing can be mounted here"
    unmount_later "$T/w/place"
    mount -o remount,ro,bind place || skip "nothing can be mounted read-only here"
    fails 6 'Read-only' encrypt "$F/m/add.onnx" -o place/c -r "$R"
    fails 6 'Read-only' keygen -o place/key.txt
    fails 6 'Read-only' decrypt b -i "$KEY" -o place/out
    fails 6 'Read-only' run b -i "$KEY" --random 1 --output place/npy
    fails 6 'Read-only' compile place/b -i "$KEY" --ep OrtcryptReference
    ortcrypt inspect place/b -i "$KEY" >/dev/null
    ortcrypt verify place/b -i "$KEY" >/dev/null
    ortcrypt run place/b -i "$KEY" --random 1 >/dev/null
    ortcrypt decrypt place/b -i "$KEY" -o out >/dev/null
    ortcrypt compile place/b -i "$KEY" --ep OrtcryptReference -o compiled >/dev/null
}

@test "files without permission, as an ordinary user: exit code 6" {
    [ "$(id -u)" = 0 ] || skip "needs to become another user"
    command -v setpriv >/dev/null || skip "setpriv is not here"
    readable=$(mktemp -d /tmp/ortcrypt-test.XXXXXX)
    OUTSIDE=$readable # bats' own folders are closed to other users
    chmod 755 "$readable"
    cp "$ORTCRYPT" "$F/m/add.onnx" "$readable/"
    cp -r b "$readable/b"
    chmod -R a+rX "$readable"
    cp "$KEY" "$readable/key.txt"
    chmod 600 "$readable/key.txt"
    as_nobody() { run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups "$readable/ortcrypt" "$@"; }
    as_nobody inspect "$readable/b" -i "$readable/key.txt"
    check_failed 6 'key.txt.*Permission denied'
    as_nobody encrypt "$readable/add.onnx" -o "$readable/c" -r "$R"
    check_failed 6 'Permission denied'
    as_nobody keygen -o "$readable/new.txt"
    check_failed 6 'new.txt: Permission denied'
    chmod 000 "$readable/add.onnx"
    as_nobody encrypt "$readable/add.onnx" -o /tmp/never.ortc -r "$R"
    check_failed 6 'add.onnx.*Permission denied'
    chmod 000 "$readable/b/manifest"
    as_nobody inspect "$readable/b"
    check_failed 6 'manifest.*Permission denied'
}

@test "an EP library that does not load, or is none" {
    echo text >text.so
    fails 1 'text.so' compile b -i "$KEY" --ep OrtcryptReference=text.so
    fails 1 'gone.so' run b -i "$KEY" --ep OrtcryptReference=gone.so --random 1 ||
        fails 6 'gone.so' run b -i "$KEY" --ep OrtcryptReference=gone.so --random 1
    command -v cc >/dev/null || skip "no C compiler here"
    echo 'int nothing_of_an_execution_provider;' >other.c
    cc -shared -fPIC -o other.so other.c
    fails 1 'other.so' compile b -i "$KEY" --ep OrtcryptReference=other.so
    cmp b/manifest "$F/good.ortc/manifest"
}

@test "a runtime that does not load" {
    echo text >text.so
    run --separate-stderr ortcrypt run b -i "$KEY" --random 1 --ort ./text.so
    [ "$status" -ne 0 ]
    check_failed "$status" 'text.so'
}

@test "an EP that compiles nothing: refused, unless it is allowed" {
    make_bundle c "$F/m/sequence.onnx"
    before=$(state_of c)
    fails 1 'OrtcryptReference compiled no node of this model' compile c -i "$KEY" --ep OrtcryptReference
    [ "$(state_of c)" = "$before" ]
    ortcrypt compile c -i "$KEY" --ep OrtcryptReference --allow-none-compiled >/dev/null
}

@test "inputs: the wrong type, shape or number of dimensions; both are named" {
    "$PYTHON" - <<'END'
import numpy as np
np.save("good.npy", np.zeros((2, 4), dtype="<f4"))
np.save("double.npy", np.zeros((2, 4), dtype="<f8"))
np.save("wide.npy", np.zeros((2, 5), dtype="<f4"))
np.save("flat.npy", np.zeros(4, dtype="<f4"))
np.save("three.npy", np.zeros((3, 4), dtype="<f4"))
np.save("big.npy", np.zeros((2, 4), dtype=">f4"))
np.save("date.npy", np.zeros(3, dtype="datetime64[s]"))
np.save("record.npy", np.zeros(3, dtype=[("a", "<f4")]))
np.save("object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
np.savez("zip.npz", np.zeros(3))
data = open("good.npy", "rb").read()
open("cut.npy", "wb").write(data[:-1])
open("long.npy", "wb").write(data + b"x")
open("head.npy", "wb").write(data[:20])
open("lie.npy", "wb").write(data.replace(b"(2, 4)", b"(9223372036854775807, 4)".ljust(6)) )
open("evil.npy", "wb").write(data.replace(b"'fortran_order': False", b"'__import__(\"os\")': 1 "))
END
    go() { fails "$1" "$2" run b -i "$KEY" --input "a=$3" --input b=good.npy; }
    go 1 "input 'a' must be float32\[batch, 4\]; double.npy holds float64\[2, 4\]" double.npy
    go 1 "input 'a' must be float32\[batch, 4\]; wide.npy holds float32\[2, 5\]" wide.npy
    go 1 "input 'a' must be float32\[batch, 4\]; flat.npy holds float32\[4\]" flat.npy
    go 5 'big.npy.*>f4' big.npy
    go 5 'date.npy' date.npy
    go 1 'record.npy' record.npy
    go 5 'object.npy' object.npy
    go 1 'zip.npz is no .npy' zip.npz
    go 1 'cut.npy' cut.npy
    go 1 'long.npy' long.npy
    go 1 'head.npy' head.npy
    go 1 'lie.npy' lie.npy
    go 1 'evil.npy' evil.npy
    go 6 'gone.npy' gone.npy
    go 1 'b is no regular file' b
    # two inputs that do not fit each other: ORT's own words
    fails 1 . run b -i "$KEY" --input a=three.npy --input b=good.npy
}

@test "inputs: not given, given twice, of another name" {
    "$PYTHON" -c 'import numpy as np; np.save("a.npy", np.zeros((2, 4), dtype="<f4"))'
    fails 2 "input 'b', float32\[batch, 4\], is not given" run b -i "$KEY" --input a=a.npy
    grep -q 'hint: --input b=FILE.npy, or --random' <<<"$stderr"
    fails 2 "no input 'c'" run b -i "$KEY" --input c=a.npy
    grep -q 'hint: its inputs: a, b' <<<"$stderr"
    fails 2 "input 'a' is given twice" run b -i "$KEY" --input a=a.npy --input a=a.npy
}

@test "embed mode with 2 GiB or more is refused before anything is compiled" {
    [ "$(df --output=avail -k . | tail -1)" -gt 5000000 ] || skip "needs 5 GB of disk for a bundle of 2 GiB"
    "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" -- "$ORTCRYPT" encrypt "$F/m/huge/huge.onnx" -o huge -r "$R" >shown
    grep -Eq $'\r\033\\[K[a-z ]+\\[#*-*\\] [0-9.]+ [KMG]iB of 2.0 GiB, [0-9.]+ [KMG]iB/s' shown # the progress bar, on a terminal
    run --separate-stderr timeout 60 "$ORTCRYPT" compile huge -i "$KEY" --ep OrtcryptReference --embed
    check_failed 1 '2 GiB|2147483648' || check_failed 2 '2 GiB|2147483648'
    [ "$(ortcrypt inspect huge -i "$KEY" --json | jq .sequence)" = 1 ]
    rm -r huge
}
