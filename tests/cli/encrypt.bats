# Making bundles.
load helpers
setup_file() { common_setup_file; }
setup() { common_setup; }

@test "encrypt makes a bundle and prints its id and pin" {
    run --separate-stderr ortcrypt encrypt "$F/m/add.onnx" -o b -r "$R"
    [ "$status" = 0 ]
    silent
    pin=$(sha256sum b/manifest | cut -d' ' -f1)
    grep -q "$pin" <<<"$output"
    [ "$(cat b/FORMAT)" = ortcrypt/1 ]
    [ -f "b/keys/$pin.age" ]
    [ -z "$(ls b/tmp 2>/dev/null)" ]
    [ "$(ls)" = b ]
}

@test "--json: one object with what was made" {
    run --separate-stderr ortcrypt encrypt "$F/m/add.onnx" -o b -r "$R" --json
    [ "$status" = 0 ]
    silent
    [ "$(json_of .bundle.manifest <<<"$output")" = "$(sha256sum b/manifest | cut -d' ' -f1)" ]
    [ "$(json_of .bundle.sequence <<<"$output")" = 1 ]
    [ "$(json_of .bundle.bytes <<<"$output")" = "$(stat -c %s "$F/m/add.onnx")" ]
    [ "$(json_of .path <<<"$output")" = b ]
}

@test "an error with --json is one object too" {
    run --separate-stderr ortcrypt encrypt gone.onnx -o b -r "$R" --json
    check_failed 6 'gone.onnx'
    [ "$(json_of .error.exit_code <<<"$output")" = 6 ]
    [ "$(json_of .error.status <<<"$output")" = ORTCRYPT_E_IO ]
}

@test "no byte of a real model is in the bundle" {
    [ -x "$ORTCRYPT_BUILD/find_plaintext" ] || skip "find_plaintext is not built"
    [ -f "$MODELS/ppocr_cls.onnx" ] || skip "the model is not here"
    ortcrypt encrypt "$MODELS/ppocr_cls.onnx" -o b -r "$R" --extra "$KEY" --label word=searchable >/dev/null
    run "$ORTCRYPT_BUILD/find_plaintext" "$MODELS/ppocr_cls.onnx" -- b
    [ "$status" = 0 ]
    refute grep -rq 'ppocr\|key.txt\|searchable\|AGE-SECRET' b
}

@test "two encryptions of one model share nothing" {
    make_bundle a
    make_bundle b
    refute cmp -s a/manifest b/manifest
    [ "$(cd a/objects
    find . -type f | sort)" != "$(cd b/objects
    find . -type f | sort)" ]
}

@test "every recipient can open: -r twice, and a recipients file with comments" {
    other=$(sed -n 's/^# public key: //p' "$F/other.txt")
    printf '# the team\n\n%s\r\n%s\n' "$R" "$other" >team.txt
    ortcrypt encrypt "$F/m/add.onnx" -o a -r "$R" -r "$other" >/dev/null
    ortcrypt encrypt "$F/m/add.onnx" -o b -R team.txt >/dev/null
    for bundle in a b; do
        for key in "$KEY" "$F/other.txt"; do
            run ortcrypt inspect "$bundle" -i "$key" --json
            [ "$status" = 0 ]
            [ "$(jq -r '.recipients | sort | join(" ")' <<<"$output")" = "$(printf '%s\n' "$R" "$other" | sort | paste -sd' ')" ]
        done
    done
}

@test "a recipients file: the line that is wrong is named, and an empty one is refused" {
    printf '%s\nnonsense\n' "$R" >team.txt
    fails 2 'team.txt, line 2' encrypt "$F/m/add.onnx" -o b -R team.txt
    printf '# nobody\n' >empty.txt
    fails 1 'empty.txt holds no recipient' encrypt "$F/m/add.onnx" -o b -R empty.txt
    fails 6 'gone.txt' encrypt "$F/m/add.onnx" -o b -R gone.txt
    [ ! -e b ]
}

@test "recipients that are none, or of another type" {
    fails 2 'recipient' encrypt "$F/m/add.onnx" -o b -r age1nonsense
    fails 5 'recipient|ssh' encrypt "$F/m/add.onnx" -o b -r "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1qPdZ5VZT5u0oZC6Xo6GdT7lIBSZK2f0T5A2pO3l1a me@here"
    [ ! -e b ]
}

@test "a secret key in the place of a recipient is not repeated" {
    secret=$(grep AGE- "$KEY")
    fails 2 'recipient' encrypt "$F/m/add.onnx" -o b -r "$secret"
    refute grep -q "$secret" <<<"$stderr"
}

@test "passphrases: from a descriptor, for encrypting and opening" {
    ortcrypt encrypt "$F/m/add.onnx" -o b --passphrase-fd 3 >/dev/null 3<<<'correct horse'
    ortcrypt inspect b --passphrase-fd 3 3<<<'correct horse' | grep -q '^id '
    run --separate-stderr bash -c "'$ORTCRYPT' inspect b --passphrase-fd 3 3<<<'wrong horse'"
    check_failed 4 'key'
    run --separate-stderr bash -c "'$ORTCRYPT' encrypt '$F/m/add.onnx' -o c --passphrase-fd 3 3</dev/null"
    check_failed 4 'passphrase is empty'
    run --separate-stderr bash -c "'$ORTCRYPT' encrypt '$F/m/add.onnx' -o c --passphrase-fd 99"
    check_failed 6 'descriptor 99'
}

@test "passphrases: asked for twice on the terminal, without echo" {
    run "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" 'Passphrase: ' 'correct horse' 'Again: ' 'correct horse' -- "$ORTCRYPT" encrypt "$F/m/add.onnx" -o b -p
    [ "$status" = 0 ]
    refute grep -q 'correct horse' <<<"$output"
    run "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" 'Passphrase: ' 'correct horse' -- "$ORTCRYPT" inspect b -p
    [ "$status" = 0 ]
    grep -q '^id ' <<<"$output"
    run "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" 'Passphrase: ' one 'Again: ' two -- "$ORTCRYPT" encrypt "$F/m/add.onnx" -o c -p
    [ "$status" = 2 ]
    grep -q 'not the same' <<<"$output"
    [ ! -e c ]
}

@test "passphrases: without a terminal the way out is named" {
    run --separate-stderr setsid "$ORTCRYPT" encrypt "$F/m/add.onnx" -o b -p </dev/null
    check_failed 4 'no terminal'
    grep -q -- '--passphrase-fd' <<<"$stderr"
}

@test "extra files and labels" {
    mkdir sub
    echo '{"a": 1}' >sub/tokenizer.json
    : >empty.txt
    ortcrypt encrypt "$F/m/add.onnx" -o b -r "$R" --extra sub/tokenizer.json --extra empty.txt --label version=1.2 --label 'name=a=b' >/dev/null
    run ortcrypt inspect b -i "$KEY" --json
    [ "$(jq -r .labels.version <<<"$output")" = 1.2 ]
    [ "$(jq -r .labels.name <<<"$output")" = a=b ]
    [ "$(jq -r '[.variants[0].parts[] | select(.role == "extra") | .name] | sort | join(" ")' <<<"$output")" = "empty.txt tokenizer.json" ]
}

@test "external data is found beside the model, also through symbolic links" {
    ln -s "$F/m/ext/good.onnx" model.onnx
    fails 6 'weights.bin' encrypt model.onnx -o b -r "$R"
    ln -s "$F/m/ext/weights.bin" weights.bin
    ortcrypt encrypt model.onnx -o b -r "$R" >/dev/null
    run ortcrypt inspect b -i "$KEY" --json
    [ "$(jq -r '.variants[0].parts[] | select(.role == "external") | "\(.name) \(.len)"' <<<"$output")" = "weights.bin 16640" ]
}

@test "Ctrl-C: exit code 1, nothing is left" {
    printf '#!/bin/sh\nkill -INT $PPID\nexec age -r %s\n' "$R" >wrap
    chmod +x wrap
    run --separate-stderr ortcrypt encrypt "$F/m/add.onnx" -o b --recipient-command ./wrap
    [ "$status" = 1 ]
    [ "$(ls)" = wrap ]
}

@test "a wrapping command that ends badly, writes too much, or does not exist" {
    fails 4 'key' encrypt "$F/m/add.onnx" -o b --recipient-command false
    grep -q 'note: false ended with exit code 1' <<<"$stderr"
    fails 4 'key' encrypt "$F/m/add.onnx" -o b --recipient-command 'head -c 300000 /dev/zero'
    grep -q 'note: head wrote more' <<<"$stderr"
    fails 4 'key' encrypt "$F/m/add.onnx" -o b --recipient-command ./gone
    grep -q 'note: ./gone cannot be started' <<<"$stderr"
    fails 2 'quote is not closed' encrypt "$F/m/add.onnx" -o b --recipient-command "age -r 'x"
    [ -z "$(ls)" ]
}

@test "closed standard streams: no message lands in a file" {
    run bash -c "'$ORTCRYPT' encrypt '$F/m/add.onnx' -o b -r '$R' >&- 2>&- <&-"
    [ "$status" = 6 ] # the result could not be printed
    ortcrypt verify b -i "$KEY" >/dev/null
    run bash -c "'$ORTCRYPT' keygen >&- 2>&-"
    [ "$status" = 6 ]
    run bash -c "'$ORTCRYPT' keygen -o key.txt 2>&- <&-"
    [ "$status" = 0 ]
    [ "$(wc -l <key.txt)" = 3 ]
}

@test "Ctrl-C at the passphrase: exit code 1, the terminal echoes again" {
    cat >session <<END
stty -a >before
trap : INT
"$ORTCRYPT" encrypt "$F/m/add.onnx" -o b -p
echo "code \$?"
stty -a >after
END
    run "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" 'Passphrase: ' $'half\x03' -- bash session
    grep -q '^code 1' <<<"$output"
    cmp before after
    [ ! -e b ]
}
