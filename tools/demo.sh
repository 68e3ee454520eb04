#!/bin/bash
# The story of `make demo`: a real model is encrypted, compiled and run, and nobody finds its bytes. Usage: tools/demo.sh BUILD-FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
model=build/deps/models/ppocr_rec.onnx
work=$build/demo
bundle=$work/recogniser.ortc
ORTCRYPT_ORT=$(pwd)/$(ls -d build/deps/ort/*/libonnxruntime.so.* | sort -V | tail -1)
export ORTCRYPT_ORT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
stop() { echo "demo: $*" >&2; exit 1; }

# Shows a command as one would type it (from the build folder), then runs it.
ortcrypt() {
    printf '  $ ortcrypt'
    printf ' %s' "$@"
    printf '\n'
    "$build/ortcrypt" "$@"
}

rm -rf "$work"
mkdir -p "$work"

say "A real model: PP-OCR's text recogniser, $(stat -c %s $model) bytes, on ONNX Runtime ${ORTCRYPT_ORT##*.so.}"

say "1. A key. Its public half encrypts, its secret half opens."
ortcrypt keygen -o $work/key.txt
recipient=$(sed -n 's/^# public key: //p' $work/key.txt)

say "2. Encrypt. From here on no byte of the model is in a file in the clear."
ortcrypt encrypt $model -o $bundle -r "$recipient"

say "3. Compile with the reference execution provider. Its engines are encrypted as it writes them."
ortcrypt compile $bundle -i $work/key.txt --ep OrtcryptReference

say "4. What the bundle says with the key; without it only sizes are visible."
ortcrypt inspect $bundle -i $work/key.txt

say "5. Run it, and compare with the plaintext model on the CPU execution provider."
ortcrypt run $bundle -i $work/key.txt --ep OrtcryptReference --random 1 --dim x:2=48 --dim x:3=320 --compare $model

say "6. Look for the model in the bundle: every 64-byte window of it, at every offset."
printf '  $ find_plaintext model -- model      (the search can find something: the model in itself)\n'
"$build/find_plaintext" $model -- $model && stop "the search does not even find the model in itself"
printf '  $ find_plaintext model -- bundle\n'
"$build/find_plaintext" $model -- $bundle || stop "the bundle holds plaintext"

say "7. Flip one bit of an encrypted object."
object=$(find $bundle/objects -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
cp "$object" $work/kept
offset=$(($(stat -c %s "$object") / 2))
byte=$(od -An -tu1 -j $offset -N1 "$object" | tr -d ' ')
printf '%b' "\\x$(printf '%02x' $((byte ^ 1)))" | dd of="$object" bs=1 seek=$offset conv=notrunc status=none
code=0
ortcrypt verify $bundle -i $work/key.txt || code=$?
[ $code = 3 ] || stop "the altered bundle was not refused with exit code 3 but $code"
echo "  refused, exit code 3: not authentic"
cat $work/kept >"$object"
ortcrypt verify $bundle -i $work/key.txt

say "Done. The bundle is $bundle, its key $work/key.txt; try: $build/ortcrypt --help"
