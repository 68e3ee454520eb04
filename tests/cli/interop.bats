# Other people's tools: age for the key file, ssh keys through age, Python's cryptography for the rest.
load helpers
setup_file() { common_setup_file; }
setup() {
    common_setup
    command -v age >/dev/null || skip "age is not installed"
    INTEROP=$ORTCRYPT_SOURCE/tests/vectors/interop
}

key_file() { echo "$1/keys/$(sha256sum "$1/manifest" | cut -d' ' -f1).age"; }

@test "age opens our key file: the payload is what docs/format.md says" {
    make_bundle b
    age -d -i "$KEY" "$(key_file b)" >payload
    head -1 payload | grep -Eq '^\{"format":"ortcrypt/1","bundle":"[0-9a-f]{32}","key":"[A-Za-z0-9+/]{43}="\}$'
    [ "$(head -1 payload | wc -c)" = 121 ]
    [ "$(sed 1d payload)" = "recipient $R" ]
    [ "$(head -1 payload | jq -r .bundle)" = "$(ortcrypt inspect b -i "$KEY" --json | jq -r .bundle_id)" ]
}

@test "a key file that age writes opens: another X25519 key, armored too" {
    make_bundle b
    other=$(sed -n 's/^# public key: //p' "$F/other.txt")
    age -d -i "$KEY" "$(key_file b)" >payload
    age -r "$other" -r "$R" <payload >new.age
    cp new.age "$(key_file b)"
    ortcrypt verify b -i "$F/other.txt" >/dev/null
    ortcrypt verify b -i "$KEY" >/dev/null
    age -r "$other" <payload >new.age
    cp new.age "$(key_file b)"
    fails 4 . inspect b -i "$KEY"
    ortcrypt inspect b -i "$F/other.txt" | grep -q "$R" # the list of recipients is in the payload
}

@test "an identity of age-keygen, and ours in age" {
    age-keygen -o theirs.txt 2>/dev/null
    ortcrypt encrypt "$F/m/add.onnx" -o b -r "$(age-keygen -y theirs.txt)" >/dev/null
    ortcrypt verify b -i theirs.txt >/dev/null
    age -r "$R" <"$KEY" >sealed
    age -d -i "$KEY" sealed | cmp - "$KEY"
}

@test "an identity file that is itself encrypted: the way is named, and works" {
    make_bundle b
    age -r "$(sed -n 's/^# public key: //p' "$F/other.txt")" <"$KEY" >key.age
    fails 5 'key.age is an encrypted identity' inspect b -i key.age
    grep -q 'hint: .*pipe' <<<"$stderr"
    age -d -i "$F/other.txt" key.age | ortcrypt inspect b -i - >/dev/null
}

@test "ssh keys through --recipient-command and --identity-command" {
    ssh-keygen -q -t ed25519 -N '' -C 'me here' -f ssh_key
    cp ssh_key.pub 'key with spaces.pub'
    ortcrypt encrypt "$F/m/add.onnx" -o b --recipient-command "age -e -R 'key with spaces.pub'" >/dev/null
    ortcrypt inspect b | grep -q 'ssh-ed25519'
    fails 5 . inspect b -i "$KEY"
    ortcrypt verify b --identity-command 'age -d -i ssh_key' >/dev/null
    ortcrypt compile b --identity-command 'age -d -i ssh_key' --ep OrtcryptReference >/dev/null
    ortcrypt run b --identity-command 'age -d -i ssh_key' --ep OrtcryptReference --random 1 --compare "$F/m/add.onnx" >/dev/null
    ssh-keygen -q -t ed25519 -N '' -f wrong_key
    fails 4 . inspect b --identity-command 'age -d -i wrong_key'
    grep -q 'note: age ended with exit code 1' <<<"$stderr"
}

@test "a command's output that is no payload is refused" {
    make_bundle b
    fails 3 . inspect b --identity-command 'echo nonsense' || fails 4 . inspect b --identity-command 'echo nonsense'
    fails 3 . inspect b --identity-command true || fails 4 . inspect b --identity-command true
}

@test "a passphrase file of age opens here" {
    make_bundle b
    age -d -i "$KEY" "$(key_file b)" >payload
    run "$PYTHON" "$BATS_TEST_DIRNAME/on_terminal.py" 'Enter passphrase (leave empty to autogenerate a secure one): ' 'open sesame' 'Confirm passphrase: ' 'open sesame' -- \
        age -p -o new.age payload
    [ -s new.age ] || skip "this age asks otherwise"
    cp new.age "$(key_file b)"
    ortcrypt verify b --passphrase-fd 3 3<<<'open sesame' >/dev/null
}

@test "Python opens our bundle: the original files byte for byte" {
    "$PYTHON" -c 'import cryptography.cobblestone' 2>/dev/null || skip "cryptography 50 is not here"
    make_bundle b "$F/m/ext/good.onnx"
    "$PYTHON" "$INTEROP/open_bundle.py" b "$KEY" out >/dev/null
    found=$(find out -type f -exec sha256sum {} + | cut -d' ' -f1)
    for file in good.onnx weights.bin; do
        grep -q "$(sha256sum <"$F/m/ext/$file" | cut -d' ' -f1)" <<<"$found"
    done
}

@test "Python opens a compiled bundle of ours" {
    "$PYTHON" -c 'import cryptography.cobblestone' 2>/dev/null || skip "cryptography 50 is not here"
    make_bundle b "$F/m/ext/good.onnx"
    ortcrypt compile b -i "$KEY" --ep OrtcryptReference >/dev/null
    "$PYTHON" "$INTEROP/open_bundle.py" b "$KEY" out >/dev/null
    [ "$(ls out | wc -l)" = 2 ]
}

@test "a bundle that Python makes opens, runs and decrypts here" {
    "$PYTHON" -c 'import cryptography.cobblestone' 2>/dev/null || skip "cryptography 50 is not here"
    "$PYTHON" "$INTEROP/make_bundle.py" b "$R" "$F/m/ext/good.onnx" "$F/m/ext/weights.bin" >/dev/null
    ortcrypt verify b -i "$KEY" | grep -q 'authentic$'
    ortcrypt run b -i "$KEY" --random 1 --compare "$F/m/ext/good.onnx" | grep -q 'equal bytes: yes'
    ortcrypt decrypt b -i "$KEY" -o out >/dev/null
    cmp out/weights.bin "$F/m/ext/weights.bin"
}
