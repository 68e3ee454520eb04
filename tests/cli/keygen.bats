# New identities.
load helpers
setup() { common_setup; }

@test "keygen -o: age-keygen's file, mode 0600, the recipient on standard error" {
    umask 000
    run --separate-stderr ortcrypt keygen -o key.txt
    [ "$status" = 0 ]
    [ -z "$output" ]
    [ "$(stat -c %a key.txt)" = 600 ]
    [ "$(wc -l <key.txt)" = 3 ]
    sed -n 1p key.txt | grep -Eq '^# created: [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$'
    sed -n 3p key.txt | grep -Eq '^AGE-SECRET-KEY-1[A-Z0-9]{58}$'
    recipient=$(sed -n 's/^# public key: //p' key.txt)
    [ "$stderr" = "Public key: $recipient" ]
    [[ $recipient =~ ^age1[a-z0-9]{58}$ ]]
}

@test "age-keygen derives the same recipient" {
    command -v age-keygen >/dev/null || skip "age is not installed"
    ortcrypt keygen -o key.txt 2>/dev/null
    [ "$(age-keygen -y key.txt)" = "$(sed -n 's/^# public key: //p' key.txt)" ]
}

@test "without -o the identity goes to standard output" {
    run --separate-stderr ortcrypt keygen
    [ "$status" = 0 ]
    grep -q '^AGE-SECRET-KEY-1' <<<"$output"
    grep -q '^Public key: age1' <<<"$stderr"
    refute grep -q 'SECRET' <<<"$stderr"
}

@test "a redirected identity that others can read is pointed out" {
    umask 022
    run --separate-stderr bash -c "'$ORTCRYPT' keygen >open.txt"
    [ "$status" = 0 ]
    grep -q '^ortcrypt: note: .*read by others' <<<"$stderr"
    umask 077
    run --separate-stderr bash -c "'$ORTCRYPT' keygen >closed.txt"
    refute grep -q note <<<"$stderr"
}

@test "two keys are never the same" {
    [ "$(ortcrypt keygen 2>/dev/null | grep AGE)" != "$(ortcrypt keygen 2>/dev/null | grep AGE)" ]
}

@test "an existing file, folder or link is never overwritten: exit code 6" {
    echo precious >key.txt
    fails 6 'key.txt exists already' keygen -o key.txt
    [ "$(cat key.txt)" = precious ]
    mkdir folder
    fails 6 'folder exists already' keygen -o folder
    ln -s nowhere dangling
    fails 6 'dangling exists already' keygen -o dangling
    [ ! -e nowhere ]
}

@test "a folder that is missing: exit code 6" {
    fails 6 'no/such/key.txt: No such file or directory' keygen -o no/such/key.txt
}

@test "a full disk: exit code 6, no half key" {
    [ -c /dev/full ] || skip "no /dev/full here"
    run --separate-stderr bash -c "'$ORTCRYPT' keygen >/dev/full"
    check_failed 6 'No space left'
}
