# The sandbox: an execution provider that tries to let plaintext out (tests/sly_ep), kernels that cannot make one, other users.
load helpers

CALL_LANDLOCK=444 # landlock_create_ruleset, the same number on every machine
CALL_SECCOMP=$([ "$(uname -m)" = aarch64 ] && echo 277 || echo 317)

setup_file() { common_setup_file; }

setup() {
    common_setup
    W=$ORTCRYPT_BUILD/without_calls
    SLY="OrtcryptReference=$ORTCRYPT_BUILD/libsly_ep.so"
    export SLY_REFERENCE=$ORTCRYPT_BUILD/libortcrypt_reference_ep.so
    landlock=$(ortcrypt eps --json | json_of .kernel.landlock)
}

teardown() {
    if [ -n "${SLY_PID:-}" ]; then
        kill "$SLY_PID" 2>/dev/null || true
        rm -f "/tmp/sly-$SLY_PID" "/dev/shm/sly-$SLY_PID"
        # without seccomp the queue is made, and Landlock keeps it from being removed
        "$PYTHON" -c 'import ctypes, sys; ctypes.CDLL(None).mq_unlink(sys.argv[1].encode())' "/sly-$SLY_PID"
    fi
    if [ -n "${LISTENER:-}" ]; then
        wait "$LISTENER" || true
    fi
}

need_landlock() { [ "$landlock" -ge 4 ] || skip "Landlock ABI $landlock"; }

# A bundle whose weight is the marker, a room with victims, and somebody who listens. The plaintext model is gone afterwards.
prepare() {
    MARKER=sly-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
    export SLY_MARKER=$MARKER SLY_ROOM=$T/room SLY_BUNDLE=$T/w/sly.ortc SLY_FD=9
    mkdir "$SLY_ROOM"
    "$PYTHON" - "$T/w/plain.onnx" "$MARKER" <<'END'
import sys
from onnx import TensorProto as T, helper as h
raw = sys.argv[2].encode()
raw += b"\x41" * (64 - len(raw))
w = T(name="w", data_type=T.FLOAT, dims=[16], raw_data=raw)
info = [h.make_tensor_value_info(n, T.FLOAT, [16]) for n in "xy"]
graph = h.make_graph([h.make_node("Mul", ["x", "w"], ["y"])], "g", info[:1], info[1:], [w])
open(sys.argv[1], "wb").write(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())
END
    grep -q "$MARKER" plain.onnx
    ortcrypt encrypt plain.onnx -o sly.ortc -r "$R" >/dev/null
    rm plain.onnx
    for name in victim victim2 victim3; do
        echo "$name" >"$SLY_ROOM/$name"
    done
    head -c 4096 /dev/zero >"$SLY_ROOM/mapped"
    ln -s target "$SLY_ROOM/link"
    touch "$T/stamp"
    listen
}

# listen [PREFIX...]: starts it; its standard output is a file, for who takes descriptors of other processes.
listen() {
    mkfifo -m 666 "$T/ready"
    "$@" "$PYTHON" "$BATS_TEST_DIRNAME/listen.py" "$SLY_ROOM" "$T/settings" "$T/ready" >>"$SLY_ROOM/output" 3>&- &
    LISTENER=$!
    read -rt 30 _ <>"$T/ready"
    rm "$T/ready"
    . "$T/settings"
}

# what HAS VERDICT FILE: the ways with that verdict, sorted.
ways() { sed -n "s/^sly \([a-z0-9-]*\) $1\$/\1/p" "$2" | sort; }

# No line but an empty one; what there is, is printed.
none() { refute grep .; }

listener_done() {
    kill "$SLY_PID"
    wait "$LISTENER" || true
    LISTENER=
}

# compile_sly OPTIONS...: standard error in err; descriptor 9 is a file that others may write.
compile_sly() { "$ORTCRYPT" compile sly.ortc -i "$KEY" --ep "$SLY" "$@" >out 2>err 9>>"$SLY_ROOM/inherited"; }

# The same as another user, who owns the scratch folders.
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

@test "without the sandbox every way lets plaintext out: the checks can fail" {
    prepare
    compile_sly --no-sandbox
    [ "$(grep -c '^ortcrypt: note: without the sandbox' err)" = 1 ]
    listener_done
    none <<<"$(ways held err)"
    # what no kernel allows between file systems, and what this one may lack
    refute grep -Ev '^(memfd-linked|attribute-at|inode-flags|handle|mount|posix-queue|kernel-key|io-uring|other-numbering|keeps-userfaultfd)$' <<<"$(ways absent err)"
    run "$PYTHON" "$BATS_TEST_DIRNAME/find_marker.py" "$MARKER" "$T/stamp" "$T" /tmp /dev/shm
    [ "$status" -eq 1 ]
    for place in absolute openat2 target unnamed mapped child program early inherited victim heard output w/sly-relative sly.ortc/objects/sly \
        "name: .*/hard-$MARKER" "name: .*/folder-$MARKER" "name: .*/fifo-$MARKER" "link: .*/symlink" "attribute: .*/victim" \
        "content: /tmp/sly-$SLY_PID" "content: /dev/shm/sly-$SLY_PID"; do
        grep -q "$place\$" <<<"$output" || { echo "not found: $place"; echo "$output"; return 1; }
    done
    [ "$(grep -ao "$MARKER" "$SLY_ROOM/heard" | wc -l)" -ge 8 ] # seven sockets and the memory
    [ "$(stat -c '%a %Y %s' "$SLY_ROOM/victim")" != "$(stat -c '%a %Y %s' "$SLY_ROOM/victim2")" ]
}

@test "in the sandbox no way lets plaintext out, and the model is compiled" {
    need_landlock
    prepare
    before=$(state_of "$SLY_ROOM" | grep -v heard)
    times=$(stat -c '%n %Y %Z' "$SLY_ROOM"/victim*)
    compile_sly --require-sandbox
    refute grep -q '^ortcrypt: ' err
    listener_done
    [ "$(grep -c '^sly ' err)" -gt 50 ]
    none <<<"$(ways through err | grep -v '^keeps-')"
    [ "$(ways through err | tr '\n' ' ')" = "keeps-memfd keeps-null keeps-pair keeps-shared-memory keeps-userfaultfd " ] ||
        [ "$(ways through err | tr '\n' ' ')" = "keeps-memfd keeps-null keeps-pair keeps-shared-memory " ]
    "$PYTHON" "$BATS_TEST_DIRNAME/find_marker.py" "$MARKER" "$T/stamp" "$T" /tmp /dev/shm
    [ "$(state_of "$SLY_ROOM" | grep -v -e heard -e inherited)" = "$before" ]
    [ ! -s "$SLY_ROOM/inherited" ]
    [ "$(stat -c '%n %Y %Z' "$SLY_ROOM"/victim*)" = "$times" ]
    ortcrypt verify sly.ortc -i "$KEY" >/dev/null
    ortcrypt run sly.ortc -i "$KEY" --ep OrtcryptReference --random 1 --output result >/dev/null
    [ -s result/y.npy ]
}

@test "compiling just in time writes the cache and the machine's key, the EP nothing" {
    need_landlock
    prepare
    "$ORTCRYPT" run sly.ortc -i "$KEY" --ep "$SLY" --random 1 --output result >out 2>err 9>>"$SLY_ROOM/inherited"
    listener_done
    [ "$(grep -c '^sly ' err)" -gt 50 ]
    none <<<"$(ways through err | grep -v '^keeps-')"
    [ -s "$HOME/.local/share/ortcrypt/machine.key" ]
    [ -n "$(find "$HOME/.cache/ortcrypt" -name manifest)" ]
    [ -s result/y.npy ]
    "$PYTHON" "$BATS_TEST_DIRNAME/find_marker.py" "$MARKER" "$T/stamp" "$T" /tmp /dev/shm
}

@test "an ordinary user is held in the same way" {
    need_landlock
    [ "$(id -u)" = 0 ] || skip "needs root to become somebody else"
    chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "$T" "$T/.."
    as_nobody test -x "$ORTCRYPT" -a -r "$NEW_RUNTIME" || skip "another user cannot read the build folder"
    prepare
    cp "$KEY" "$T/w/mine.txt"
    listener_done
    rm "$SLY_ROOM/stream" "$SLY_ROOM/datagram" "$SLY_ROOM/heard" "$T/settings"
    chown -R 65534:65534 "$T"
    listen as_nobody
    as_nobody "$ORTCRYPT" compile sly.ortc -i mine.txt --ep "$SLY" --require-sandbox --variant held >out 2>err 9>>"$SLY_ROOM/inherited"
    [ "$(grep -c '^sly ' err)" -gt 50 ]
    none <<<"$(ways through err | grep -v '^keeps-')"
    as_nobody "$ORTCRYPT" compile sly.ortc -i mine.txt --ep "$SLY" --no-sandbox --variant free >out 2>err 9>>"$SLY_ROOM/inherited"
    listener_done
    none <<<"$(ways held err)"
}

@test "a kernel without Landlock: a note, and the rest is held; --require-sandbox refuses" {
    make_bundle b
    run --separate-stderr "$W" "$CALL_LANDLOCK" -- "$ORTCRYPT" run b -i "$KEY" --random 1
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ortcrypt: note: .*no Landlock' <<<"$stderr")" = 1 ]
    run --separate-stderr "$W" "$CALL_LANDLOCK" -- "$ORTCRYPT" run b -i "$KEY" --random 1 --require-sandbox
    check_failed 5 'sandbox is required .*Landlock'
    [ -z "$output" ]
    run --separate-stderr "$W" "$CALL_LANDLOCK" -- "$ORTCRYPT" compile b -i "$KEY" --ep OrtcryptReference --require-sandbox
    check_failed 5 'sandbox is required .*Landlock'
    [ "$("$W" "$CALL_LANDLOCK" -- "$ORTCRYPT" eps --json 2>/dev/null | json_of .kernel.landlock)" = 0 ]
}

@test "a kernel without Landlock: sockets and attributes are held all the same" {
    prepare
    "$W" "$CALL_LANDLOCK" -- "$ORTCRYPT" compile sly.ortc -i "$KEY" --ep "$SLY" >out 2>err 9>>"$SLY_ROOM/inherited"
    listener_done
    ways held err >held
    for way in unix-stream unix-abstract unix-datagram unix-pair udp tcp tcp-fast-open attribute mode times memory-of-process; do
        grep -qx -- "$way" held
    done
    ways through err | grep -qx absolute # this is what the note says
}

@test "a kernel without seccomp: a note, files are held; --require-sandbox refuses" {
    need_landlock
    prepare
    "$W" "$CALL_SECCOMP" -- "$ORTCRYPT" compile sly.ortc -i "$KEY" --ep "$SLY" >out 2>err 9>>"$SLY_ROOM/inherited"
    listener_done
    [ "$(grep -c '^ortcrypt: note: .*no seccomp' err)" = 1 ]
    ways held err >held
    for way in absolute working-folder bundle-folder tmp shm renamed tcp traced; do
        grep -qx -- "$way" held
    done
    run --separate-stderr "$W" "$CALL_SECCOMP" -- "$ORTCRYPT" run sly.ortc -i "$KEY" --random 1 --require-sandbox
    check_failed 5 'sandbox is required .*seccomp'
}

@test "a thread from before ONNX Runtime is loaded: a note; --require-sandbox refuses" {
    need_landlock
    make_bundle b
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
    LD_PRELOAD=$ORTCRYPT_BUILD/libsly_ep.so ortcrypt run b -i "$KEY" --random 1 >/dev/null 2>err # its constructor starts one
    [ "$(grep -c '^ortcrypt: note: .*threads that ran before are not held' err)" = 1 ]
    LD_PRELOAD=$ORTCRYPT_BUILD/libsly_ep.so run --separate-stderr "$ORTCRYPT" run b -i "$KEY" --random 1 --require-sandbox
    check_failed 5 '1 other thread'
    ortcrypt run b -i "$KEY" --random 1 --require-sandbox >/dev/null 2>err # without it there is none
    [ ! -s err ]
}

@test "inherited descriptors are closed where the kernel has no close_range" {
    need_landlock
    prepare
    "$W" 436 -- "$ORTCRYPT" compile sly.ortc -i "$KEY" --ep "$SLY" --require-sandbox >out 2>err 9>>"$SLY_ROOM/inherited"
    listener_done
    ways held err | grep -qx inherited-descriptor
    [ ! -s "$SLY_ROOM/inherited" ]
}

@test "descriptors that options name as files can be read, those that can be written are closed" {
    make_bundle b
    "$PYTHON" -c 'import numpy; numpy.save("a.npy", numpy.ones((1, 4), "f4"))'
    ortcrypt run b -i "$KEY" --random 1 --compare <(cat "$F/m/add.onnx") --input a=/dev/fd/7 --input b=/proc/self/fd/8 7<a.npy 8<a.npy |
        grep -q 'values from 2 to 2'
    run --separate-stderr "$ORTCRYPT" run b -i "$KEY" --random 1 --input a=/dev/fd/7 7<>a.npy
    check_failed 6 '/dev/fd/7: No such file'
}

@test "the options exclude each other, and eps has them too" {
    make_bundle b
    fails 2 'no-sandbox excludes --require-sandbox' run b -i "$KEY" --random 1 --no-sandbox --require-sandbox
    ortcrypt eps --no-sandbox >/dev/null 2>err
    grep -q 'without the sandbox' err
    ortcrypt eps | grep -q 'seccomp yes'
}

@test "an identity command runs outside: it may write, and is interrupted" {
    make_bundle b
    cat >unwrap <<END
#!/bin/sh
echo here >unwrap.log && exec age -d -i "$KEY"
END
    chmod +x unwrap
    ortcrypt run b --identity-command ./unwrap --random 1 >/dev/null
    [ -s unwrap.log ]
    printf '#!/bin/sh\nkill -INT $PPID && exec sleep 600\n' >unwrap # until it is ended
    run --separate-stderr timeout 60 "$ORTCRYPT" run b --identity-command ./unwrap --random 1
    [ "$status" -eq 1 ]
    grep -q '^ortcrypt: error: stopped by a signal' <<<"$stderr"
}
