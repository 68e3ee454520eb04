# Memory while loading: within a tenth of what the plan says. malloc's threshold is fixed, because glibc moves it by the order of frees.
load helpers
setup_file() {
    common_setup_file
    make_big_bundles 192
}
setup() { common_setup; }

# near KIND PREPACKING [MODE]: each runtime.
near() {
    local library line
    for library in "$ORTCRYPT_DEPS"/ort/{1.24.4,1.30.0,1.32.0}/libonnxruntime.so.*; do
        line=$(GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 ORT_DISABLE_TELEMETRY=1 \
            "$ORTCRYPT_BUILD/bench_load" "${3:-ortcrypt}" "$F/$1.ortc" "$library" "$2" "$KEY")
        echo "$library $line"
        jq -e '.peak / .expected | . > 0.9 and . < 1.1' <<<"$line" >/dev/null
    done
}

@test "external weights, prepacking on" { near external 1; }
@test "external weights, prepacking off" { near external 0; }
@test "external weights, lazy" { near external 0 lazy; }
@test "embedded weights, prepacking on" { near embedded 1; }
@test "embedded weights, prepacking off" { near embedded 0; }
