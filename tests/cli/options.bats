# Help, versions, and what is said about wrong usage.
load helpers
setup() { common_setup; }

@test "--help, -h and help are the same page, on standard output" {
    run --separate-stderr ortcrypt --help
    [ "$status" = 0 ]
    silent
    page=$output
    for word in keygen encrypt compile run inspect verify decrypt eps ORTCRYPT_ORT ORTCRYPT_IDENTITY; do
        grep -q "$word" <<<"$page"
    done
    [ "$(ortcrypt -h)" = "$page" ]
    [ "$(ortcrypt help)" = "$page" ]
}

@test "without a verb: the help page on standard error, exit code 2" {
    run --separate-stderr ortcrypt
    [ "$status" = 2 ]
    [ -z "$output" ]
    grep -q '^Usage: ortcrypt VERB' <<<"$stderr"
}

@test "every verb has help with examples and the same page by three ways" {
    for verb in keygen encrypt compile run inspect verify decrypt eps; do
        page=$(ortcrypt "$verb" --help)
        grep -q "^Usage: ortcrypt $verb" <<<"$page"
        [ "$(sed -n '/^Examples:/,$p' <<<"$page" | grep -c '^  \$ ')" -ge 2 ]
        [ "$(ortcrypt help "$verb")" = "$page" ]
        [ "$(ortcrypt "$verb" -h)" = "$page" ]
        # Every option that the page names is one that the verb takes.
        for option in $(grep -o '^  \(-., \)\?--[a-z-]*' <<<"$page" | grep -o -- '--.*'); do
            run ortcrypt "$verb" "$option" --help
            refute grep -q 'has no option' <<<"$output"
        done
        # Lines fit on a terminal, except examples.
        [ -z "$(sed '/^Examples:/,$d' <<<"$page" | grep '.\{91,\}')" ]
    done
}

@test "--version" {
    run ortcrypt --version
    [ "$status" = 0 ]
    [[ $output =~ ^ortcrypt\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a verb that is none: the nearest one is named" {
    fails 2 "there is no verb 'encrpyt'" encrpyt
    grep -q '^ortcrypt: hint: did you mean `ortcrypt encrypt`' <<<"$stderr"
    fails 2 "there is no verb 'xyzzy'" xyzzy
    fails 2 "there is no verb 'xyzzy'" help xyzzy
    fails 2 "no option '--json' before the verb" --json
}

@test "an option that is none: the nearest one, or the verb it belongs to, is named" {
    fails 2 'run has no option --inptu' run b --inptu x=y
    grep -q 'did you mean --input' <<<"$stderr"
    fails 2 'inspect has no option --repeat' inspect b --repeat 3
    grep -q 'belongs to `ortcrypt run`' <<<"$stderr"
    fails 2 'inspect has no option --xyzzy$' inspect b --xyzzy=secret
    refute grep -q secret <<<"$stderr"
    fails 2 'inspect has no option -z' inspect b -z
}

@test "arguments of options are checked" {
    fails 2 '--repeat needs a whole number' run b --repeat three
    fails 2 '--repeat needs a whole number' run b --repeat -1
    fails 2 '--min-sequence needs a whole number' verify b --min-sequence 99999999999999999999999
    fails 2 '--label needs KEY=VALUE' encrypt m -o b --label novalue
    fails 2 '--label needs KEY=VALUE' encrypt m -o b --label =x
    fails 2 '--rewrite is one of same' compile b --rewrite never
    fails 2 '--output needs an argument' keygen --output
    fails 2 '-o needs an argument' keygen -o
    fails 2 '--output needs FILE, which is empty' keygen -o ''
    fails 2 '--embed takes no argument' compile b --embed=yes
    fails 2 '--output is given twice' keygen -o a -o b
}

@test "operands are counted" {
    fails 2 'inspect needs BUNDLE' inspect
    fails 2 "nothing to do with 'c'" inspect b c
    fails 2 "nothing to do with 'x'" keygen x
    fails 2 "nothing to do with 'x'" eps x
}

@test "-oFILE, -o FILE, --output=FILE and -- are understood" {
    ortcrypt keygen -oa 2>/dev/null
    ortcrypt keygen -o b 2>/dev/null
    ortcrypt keygen --output=c 2>/dev/null
    [ -s a ]
    [ -s b ]
    [ -s c ]
    fails 6 '-odd' inspect -- -odd
}

@test "what a verb needs is said before anything is done" {
    fails 2 'encrypt needs -o' encrypt m.onnx -r age1x
    fails 4 'nobody could open the bundle' encrypt m.onnx -o b
    fails 2 'passphrase excludes recipients' encrypt m.onnx -o b -p -r age1x
    fails 2 'excludes -r and -R' encrypt m.onnx -o b -r age1x --recipient-command 'age -e'
    fails 2 'compile needs --ep' compile b -i k
    fails 2 'decrypt needs -o' decrypt b -i k
    fails 4 'no key was given' decrypt b -o d
}

@test "colours: on a terminal only, and never with NO_COLOR" {
    command -v script >/dev/null || skip "script(1) is not here"
    run script -qec "$ORTCRYPT xyzzy" /dev/null
    grep -q $'\033\\[1;31merror' <<<"$output"
    NO_COLOR=1 run script -qec "$ORTCRYPT xyzzy" /dev/null
    refute grep -q $'\033' <<<"$output"
    run ortcrypt xyzzy
    refute grep -q $'\033' <<<"$output"
}

@test "standard output that is full: exit code 6" {
    [ -c /dev/full ] || skip "no /dev/full here"
    run --separate-stderr bash -c "'$ORTCRYPT' --help >/dev/full"
    check_failed 6 'standard output'
}

@test "a reader that goes away ends nothing with a signal" {
    run --separate-stderr bash -c "set -o pipefail; '$ORTCRYPT' help run | true"
    [ "$status" -lt 128 ]
}

@test "control bytes in what is quoted do not reach the terminal" {
    run --separate-stderr ortcrypt $'x\033[31my'
    refute grep -q $'\033' <<<"$stderr"
}
