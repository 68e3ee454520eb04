# ONNX Runtimes that are tables only (tests/fakes): versions that are not there yet, and answers that are wrong.
load helpers
setup_file() { common_setup_file; }
setup() {
    common_setup
    FAKES=$ORTCRYPT_BUILD/fakes
}

# fake MINOR ARGUMENTS...: ortcrypt with that fake.
fake() {
    local library=$FAKES/libfake_ort_$1.so
    shift
    ORTCRYPT_ORT=$library "$ORTCRYPT" "$@"
}

# What the last run said on standard error, but for the sandbox (some kernels have none, which it says).
notes() { grep -v '^ortcrypt: note: .*sandbox' <<<"$stderr" || true; }

# wrong FAULT MINOR PATTERN: refused with exit code 5, one sentence.
wrong() {
    FAKE_ORT_FAULT=$1 run --separate-stderr fake "$2" eps
    check_failed 5 "$3" || return 1
    [ -z "$output" ] || return 1
    [ "$(notes | wc -l)" -le 2 ]
}

@test "every version from 1.23 on is used, and none is asked for what it has not" {
    for minor in $(seq 23 32); do
        run --separate-stderr fake "$minor" eps --json
        [ "$status" = 0 ]
        [ -z "$(notes)" ]
        [ "$(jq -r .runtime.version <<<"$output")" = "1.$minor.0" ]
    done
}

@test "eps tells the eras apart" {
    local found
    found='[.functions[] | select(.name | test("EpContext(Data(Read|Write)Func|Config)$")) | .found] | unique | tostring'
    [ "$(fake 27 eps --json | jq -r "$found")" = '[null]' ]
    [ "$(fake 28 eps --json | jq -r "$found")" = '["GetExperimentalFunction"]' ]
    [ "$(fake 31 eps --json | jq -r "$found")" = '["member"]' ]
    [ "$(fake 27 eps --json | jq -r .runtime.era)" = none ]
    [ "$(fake 28 eps --json | jq -r .runtime.era)" = experimental ]
    [ "$(fake 31 eps --json | jq -r .runtime.era)" = stable ]
}

@test "a newer 1.x that answers rightly is used, with one notice" {
    run --separate-stderr fake 33 eps
    [ "$status" = 0 ]
    [ "$(notes | wc -l)" = 1 ]
    grep -q '^ortcrypt: note: ONNX Runtime 1.33.0 is newer' <<<"$stderr"
}

@test "its round trip makes the calls that the newest known one gets, in a process of its own" {
    FAKE_ORT_LOG=known fake 32 eps --no-sandbox >/dev/null
    FAKE_ORT_LOG=newer fake 33 eps --no-sandbox 2>/dev/null >/dev/null
    grep -q '^OrtApi 426$' newer
    sort -u known >a
    sort -u newer >b
    diff a b
}

@test "a newer 1.x that answers wrongly is refused with exit code 5 and one sentence" {
    wrong WRONG_FUNCTION 33 'ONNX Runtime 1\.33\.0 does not give back the read callback that was set'
    wrong WRONG_STATE 33 'does not give back the read callback that was set'
    wrong SET_READ_FAILS 33 'refuses a read callback'
    wrong CONFIG_NULL 33 'gives no EPContext configuration'
    wrong SIZE_LIMIT 33 'refuses to say which read callback was set'
    wrong SIZE_LIMIT_OPTIONAL 33 'more arguments than are known'
    wrong SHIFTED 33 'crashes in its callback functions'
    wrong CRASHES 33 'crashes in its callback functions'
    wrong NO_SLOT 33 'lacks functions for execution providers'
    wrong WEIGHTLESS_DIFFERS 33 'source of a model without weights'
    [ -z "$(find . -name 'core*')" ]
}

@test "a known version that answers wrongly, and builds that lack a part" {
    wrong WRONG_FUNCTION 30 'ONNX Runtime 1\.30\.0 does not give back'
    wrong WRITE_INVENTED 32 'gives a write callback where none was set'
    wrong SET_WRITE_BLIND 32 'accepts a write callback without options'
    wrong NO_API 23 'does not offer its API version 23'
    wrong NO_COMPILE_API 32 'with model compilation'
    wrong NO_EP_API 32 'lacks functions for execution providers'
    FAKE_ORT_FAULT=ENV_FAILS run --separate-stderr fake 32 eps
    check_failed 1 'OrtEnv: no environment today'
}

@test "what is no 1.x, and versions that are none" {
    local version
    for version in 2.0.0 2.33.0 1.22.1 0.33.0 1.9999 1 1. 1.x $'1.\xff\xfe\x1b[31m' ''; do
        FAKE_ORT_VERSION=$version run --separate-stderr fake 33 eps
        check_failed 5 'is not supported'
        printf '%s' "$stderr" | iconv -f utf-8 -t utf-8 >/dev/null
        [ -z "$(printf '%s' "$stderr" | tr -d '\n' | grep -a '[[:cntrl:]]')" ]
    done
    FAKE_ORT_VERSION=1.31.0-dev run --separate-stderr fake 33 eps --json
    [ "$status" = 0 ]
    [ "$(jq -r .runtime.era <<<"$output")" = stable ]
}

@test "an EP library that does not register: its words, and the next one is taken" {
    FAKE_ORT_FAULT=REGISTER_FAILS run --separate-stderr fake 32 eps --ep "Fake=$ORTCRYPT_BUILD/libortcrypt_reference_ep.so"
    check_failed 1 'factories are missing'
    fake 32 eps --ep "Fake=$ORTCRYPT_BUILD/libortcrypt_reference_ep.so" | grep -q '^EP  *Fake$'
}

@test "compiling where there is no route ends before anything is asked of ORT, and the bundle is as before" {
    make_bundle b
    state_of b >before
    for minor in 27 30 32 33; do
        rm -f calls
        FAKE_ORT_LOG=calls run --separate-stderr fake "$minor" compile b -i "$KEY" --ep CPUExecutionProvider --no-sandbox
        check_failed 5 'CPUExecutionProvider cannot be used with ONNX Runtime'
        grep -q '^OrtApiBase 0$' calls
        refute grep -Eq '^OrtCompileApi ([0-9]|1[0-57-9])$' calls # 16 is the round trip's
    done
    state_of b >after
    diff before after
}
