# Man pages and completion, as the build makes them of the tables of verbs and options.
load helpers
setup() { common_setup; }

VERBS="keygen encrypt compile run inspect verify decrypt eps"

# completes WORD... : what bash offers for the last word, one a line, sorted.
completes() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ortcrypt; printf "%s\n" "${COMPREPLY[@]}"' "$T/bash" "$@" | sort
}

@test "every verb has a man page with each of its options, its examples, and no warning of groff" {
    for verb in $VERBS; do
        ortcrypt help --man "$verb" >"$T/page"
        grep -q "^\.TH ORTCRYPT\\\\-${verb^^} 1 " "$T/page"
        for option in $(ortcrypt "$verb" --help | grep -o '^  \(-., \)\?--[a-z-]*' | grep -o -- '--.*'); do
            grep -Fq -- "\\fB${option//-/\\-}\\fR" "$T/page"
        done
        grep -q '^\.SH EXAMPLES' "$T/page"
        # No line that groff would take for an unknown command or leave out.
        [ -z "$(grep '^\.' "$T/page" | grep -Ev '^\.(TH|SH|SS|TP|PP|B|BR|I|br|nf|fi)( |$)')" ]
        if command -v groff >/dev/null; then
            [ -z "$(groff -man -Tutf8 -ww -z "$T/page" 2>&1)" ]
        fi
    done
    ortcrypt help --man >"$T/page"
    for verb in $VERBS; do
        grep -q "^\.BR ortcrypt\\\\-$verb (1)" "$T/page"
    done
}

@test "the build made these very pages" {
    for verb in $VERBS; do
        ortcrypt help --man "$verb" | cmp - "$ORTCRYPT_BUILD/generated/man/ortcrypt-$verb.1"
    done
    ortcrypt help --man | cmp - "$ORTCRYPT_BUILD/generated/man/ortcrypt.1"
    ortcrypt help --completion bash | cmp - "$ORTCRYPT_BUILD/generated/completion/bash/ortcrypt"
    ortcrypt help --completion zsh | cmp - "$ORTCRYPT_BUILD/generated/completion/zsh/_ortcrypt"
    ortcrypt help --completion fish | cmp - "$ORTCRYPT_BUILD/generated/completion/fish/ortcrypt.fish"
    [ "$(ls "$ORTCRYPT_BUILD/generated/man" | wc -l)" = 10 ]
}

@test "bash completes verbs, options, choices, files and folders" {
    ortcrypt help --completion bash >"$T/bash"
    bash -n "$T/bash"
    mkdir -p model.ortc
    touch "other key.txt" model.onnx
    [ "$(completes ortcrypt en)" = encrypt ]
    [ "$(completes ortcrypt help comp)" = compile ]
    [ "$(completes ortcrypt run --rand)" = --random ]
    [ "$(completes ortcrypt run b --comp)" = --compare ]
    [ "$(completes ortcrypt compile b --rewrite '')" = "$(printf 'append\nreplace\nsame')" ]
    [ "$(completes ortcrypt compile b --rewrite = rep)" = replace ]
    [ "$(completes ortcrypt compile b --ep '')" = OrtcryptReference ]
    [ "$(completes ortcrypt run '')" = model.ortc ]
    [ "$(completes ortcrypt encrypt m)" = "$(printf 'model.onnx\nmodel.ortc')" ]
    [ "$(completes ortcrypt run b -i m)" = "$(printf 'model.onnx\nmodel.ortc')" ]
    [ "$(completes ortcrypt run b --identity oth)" = "other key.txt" ]
    [ "$(completes ortcrypt run b --input x = mod)" = "$(printf 'model.onnx\nmodel.ortc')" ]
    [ "$(completes ortcrypt run b -o m)" = model.ortc ]
    # What another verb takes is not offered; a value that is no file gets nothing.
    [ -z "$(completes ortcrypt inspect b --rand)" ]
    [ -z "$(completes ortcrypt run b --random '')" ]
    [ -z "$(completes ortcrypt eps '')" ]
    for verb in $VERBS; do
        [ "$(completes ortcrypt "$verb" --)" = "$(ortcrypt "$verb" --help | grep -o '^  \(-., \)\?--[a-z-]*' | grep -o -- '--.*' | sort)" ]
    done
}

@test "zsh and fish read theirs, and know every option" {
    ortcrypt help --completion zsh >"$T/zsh"
    ortcrypt help --completion fish >"$T/fish"
    for verb in $VERBS; do
        for option in $(ortcrypt "$verb" --help | grep -o '^  \(-., \)\?--[a-z-]*' | grep -o -- '--.*'); do
            sed -n "/^    $verb)/,/;;\$/p" "$T/zsh" | grep -q -- "$option[[}]"
            grep "from $verb'" "$T/fish" | grep -q -- " -l ${option#--} "
        done
    done
    if command -v zsh >/dev/null; then
        zsh -n "$T/zsh"
    fi
    if command -v fish >/dev/null; then
        fish -n "$T/fish"
        [ "$(fish --no-config -c "source $T/fish; complete -C 'ortcrypt compile b --rewrite '" | cut -f1 | sort | xargs)" = "append replace same" ]
        fish --no-config -c "source $T/fish; complete -C 'ortcrypt run --rand'" | grep -q '^--random'
    fi
}

@test "wrong words after help --man and --completion" {
    fails 2 "there is no verb 'xyzzy'" help --man xyzzy
    fails 2 'bash, zsh and fish' help --completion
    fails 2 'bash, zsh and fish' help --completion csh
}
