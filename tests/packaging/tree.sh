# What an installed tree must be able to do. Sourced by test_install.sh and test_dist.sh.
# ORTCRYPT_DEPS has the model, the runtimes and ONNX Runtime's headers (ONNXRUNTIME_INCLUDE_DIR names others).
: "${ORTCRYPT_SOURCE:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${ORTCRYPT_DEPS:=$ORTCRYPT_SOURCE/build/deps}"
: "${ONNXRUNTIME_INCLUDE_DIR:=$ORTCRYPT_DEPS/ort-headers}"
RUNTIME=$ORTCRYPT_DEPS/ort/1.32.0/libonnxruntime.so.1.32.0
STRICT="-Wall -Wextra -Werror"
export ORT_DISABLE_TELEMETRY=1

die() {
    echo "tests/packaging: $*" >&2
    exit 1
}

# needs LIBRARY ALLOWED-REGEX: nothing but what matches is loaded with it.
needs() {
    local others
    others=$(ldd "$1" | awk '{print $1}' | sed 's|.*/||' | grep -Ev "^($2|ld-linux.*|linux-vdso)\.so" || true)
    [ -z "$others" ] || die "$1 depends on more than it may: $others"
    refuse_path "$1"
}

# No path of the machine it was built on: neither an RPATH nor a file name inside.
refuse_path() {
    ! readelf -d "$1" | grep -E 'R(UN)?PATH' || die "$1 has a run path"
}

# same_result PROGRAM...: the program prints what the first one printed, for the source and the compiled variant.
same_result() {
    local ep
    for ep in "" "$EP"; do
        LD_LIBRARY_PATH=$LIB "$@" "$WORK/b.ortc" "$WORK/key.txt" "$RUNTIME" ${ep:+"$ep"} >"$WORK/out" || die "$* does not run"
        [ "$(wc -l <"$WORK/out")" = 40 ] || die "$* printed no result"
        [ -e "$WORK/wanted" ] || cp "$WORK/out" "$WORK/wanted"
        cmp "$WORK/out" "$WORK/wanted" || die "$* printed another result"
    done
}

check_files() {
    local file
    for file in bin/ortcrypt share/man/man1/ortcrypt.1 share/man/man1/ortcrypt-run.1 share/bash-completion/completions/ortcrypt \
        share/zsh/vendor-completions/_ortcrypt share/fish/vendor_completions.d/ortcrypt.fish share/doc/ortcrypt/copyright \
        include/ortcrypt/ep_context.h share/ortcrypt/ep_context/ortcrypt_ep_context.c; do
        [ -f "$PREFIX/$file" ] || die "$file is not in the tree"
    done
    # The command line's help and the installed pages are of one version.
    "$PREFIX/bin/ortcrypt" help --man run | cmp - "$PREFIX/share/man/man1/ortcrypt-run.1"
    needs "$LIB/libortcrypt.so" 'libcrypto|libjansson|libc'
    needs "$EP" 'libc'
    needs "$LIB/ortcrypt/libortcrypt_bridge.so" 'libc'
    needs "$PREFIX/bin/ortcrypt" 'libcrypto|libjansson|libc|libm'
    needs "$PREFIX/libexec/ortcrypt/ortcrypt-probe" 'libcrypto|libjansson|libc'
    needs "$PREFIX/libexec/ortcrypt/libortcrypt_witness.so" 'libc'
    ! grep -rIl "$ORTCRYPT_SOURCE" "$PREFIX" || die "files in the tree name the folder of the sources"
}

# The command line finds the reference EP by itself, from the tree it lies in.
check_command_line() {
    local ortcrypt=$PREFIX/bin/ortcrypt recipient
    recipient=$("$ortcrypt" keygen -o "$WORK/key.txt" 2>&1 | grep -o 'age1[a-z0-9]*' | head -n 1)
    "$ortcrypt" encrypt "$ORTCRYPT_DEPS/models/ppocr_rec.onnx" -o "$WORK/b.ortc" -r "$recipient" >/dev/null
    "$ortcrypt" compile "$WORK/b.ortc" -i "$WORK/key.txt" --ep OrtcryptReference --ort "$RUNTIME" >/dev/null
    "$ortcrypt" run "$WORK/b.ortc" -i "$WORK/key.txt" --ep OrtcryptReference --ort "$RUNTIME" --random 1 --dim x:0=1 --dim x:2=48 \
        --dim x:3=320 --compare "$ORTCRYPT_DEPS/models/ppocr_rec.onnx" >/dev/null || die "the installed command line does not run the model"
}

# The installed command line finds the bridge: QNN, where it was fetched, is bridged on a runtime whose callbacks it does not know.
check_bridge() {
    local qnn=$ORTCRYPT_DEPS/eps/qnn/onnxruntime_qnn/libonnxruntime_providers_qnn.so runtime=$ORTCRYPT_DEPS/ort/1.32.0/libonnxruntime.so.1.32.0
    "$PREFIX/bin/ortcrypt" eps --ep "QNNExecutionProvider=$qnn" --ort "$runtime" 2>/dev/null | grep -q 'route *bridged' ||
        die "the installed command line does not find the bridge"
}

# An EP that no table proves is tried out by the installed program.
check_probe() {
    local ortcrypt=$PREFIX/bin/ortcrypt
    "$ortcrypt" compile "$WORK/b.ortc" -i "$WORK/key.txt" --ep "OrtcryptTried=$ORTCRYPT_BUILD/broken/libortcrypt_broken_none.so" --variant cpp \
        --ort "$RUNTIME" 2>"$WORK/probe.log" >/dev/null || true
    grep -q 'proved with the canary' "$WORK/probe.log" || { cat "$WORK/probe.log" >&2; die "ortcrypt-probe does not work from the tree"; }
}

# check-ep's program and library lie where the command line looks.
check_check_ep() {
    "$PREFIX/bin/ortcrypt" check-ep "$EP" --ort "$RUNTIME" >"$WORK/check-ep.log" 2>&1 || { cat "$WORK/check-ep.log" >&2; die "check-ep does not work from the tree"; }
}

check_headers() {
    local header name
    for header in "$PREFIX"/include/ortcrypt/*.h; do
        name=$(basename "$header")
        for language in "c -std=c11" "c++ -std=c++17"; do
            # shellcheck disable=SC2086
            echo "#include <ortcrypt/$name>" | ${CC:-cc} -x $language $STRICT -Wpedantic -fsyntax-only -I "$PREFIX/include" \
                -isystem "$ONNXRUNTIME_INCLUDE_DIR" - || die "$name does not compile alone"
        done
    done
}

# shellcheck disable=SC2046,SC2086
check_pkg_config() {
    local examples=$PREFIX/share/doc/ortcrypt/examples
    export PKG_CONFIG_PATH=$LIB/pkgconfig
    pkg-config --exists 'ortcrypt >= 0.1' || die "pkg-config does not find ortcrypt"
    ${CC:-cc} -std=c11 $STRICT "$examples/whole_app.c" -isystem "$ONNXRUNTIME_INCLUDE_DIR" $(pkg-config --cflags --libs ortcrypt) -o "$WORK/client-c"
    ${CXX:-c++} -std=c++17 $STRICT "$examples/app.cpp" -isystem "$ONNXRUNTIME_INCLUDE_DIR" $(pkg-config --cflags --libs ortcrypt) -o "$WORK/client-cxx"
    ${CC:-cc} -std=c11 $STRICT "$examples/whole_app.c" -isystem "$ONNXRUNTIME_INCLUDE_DIR" $(pkg-config --cflags ortcrypt) "$LIB/libortcrypt.a" \
        $(pkg-config --libs --static ortcrypt | sed 's/-lortcrypt //') -o "$WORK/client-static"
    same_result "$WORK/client-c"
    same_result "$WORK/client-cxx"
    same_result "$WORK/client-static"
    ! ldd "$WORK/client-static" | grep -q libortcrypt || die "the static client uses the shared library"
    unset PKG_CONFIG_PATH
}

check_cmake() {
    mkdir "$WORK/project"
    cp "$PREFIX"/share/doc/ortcrypt/examples/{whole_app.c,app.cpp} "$WORK/project"
    cat >"$WORK/project/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.24)
project(client LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(ortcrypt 0.1 REQUIRED COMPONENTS static)
add_executable(shared_c whole_app.c)
target_link_libraries(shared_c PRIVATE ortcrypt::ortcrypt)
add_executable(static_c whole_app.c)
target_link_libraries(static_c PRIVATE ortcrypt::static)
add_executable(shared_cxx app.cpp)
target_link_libraries(shared_cxx PRIVATE ortcrypt::ortcrypt)
EOF
    { cmake -S "$WORK/project" -B "$WORK/project/build" -DCMAKE_PREFIX_PATH="$PREFIX" -DONNXRUNTIME_INCLUDE_DIR="$ONNXRUNTIME_INCLUDE_DIR" &&
        cmake --build "$WORK/project/build" -j2; } >"$WORK/cmake.log" 2>&1 || { cat "$WORK/cmake.log" >&2; die "find_package(ortcrypt) does not work"; }
    same_result "$WORK/project/build/shared_c"
    same_result "$WORK/project/build/static_c"
    same_result "$WORK/project/build/shared_cxx"
}

# check_tree PREFIX WORK: everything, with scratch files in the new folder WORK.
check_tree() {
    PREFIX=$1 WORK=$2
    mkdir -p "$WORK/home" "$WORK/tmp"
    export HOME=$WORK/home TMPDIR=$WORK/tmp
    LIB=$(dirname "$(find "$PREFIX/lib" -name libortcrypt.a)")
    EP=$LIB/ortcrypt/libortcrypt_reference_ep.so
    [ -f "$EP" ] || die "the reference EP is not in $LIB/ortcrypt"
    check_files
    check_command_line
    check_check_ep
    [ ! -d "$ORTCRYPT_DEPS/eps/qnn" ] || check_bridge
    [ ! -f "${ORTCRYPT_BUILD:-}/broken/libortcrypt_broken_none.so" ] || check_probe
    check_headers
    check_pkg_config
    check_cmake
}
