# Two commands for newcomers: `make demo` and `make test`. Everything they need is fetched by tools/setup.
JOBS ?= 2
TESTS ?= .

.PHONY: help demo test crash matrix matrix-write large bench bench-write bench-models setup dist test-dist dev asan tsan release test-asan test-tsan test-aarch64 check docs clean distclean

help:
	@echo "make demo       a real model, encrypted, compiled, run, compared and attacked"
	@echo "make test       all tests (dev build); TESTS=REGEX narrows them down"
	@echo "make test-asan  the same under the address sanitizer; make test-tsan: the threaded part under the thread sanitizer"
	@echo "make crash      killed, interrupted and without power at every system call: no bundle is lost; CRASH=\"--every 10\" is quicker"
	@echo "make matrix     every ONNX Runtime from 1.23 to 1.32 with every execution provider; make matrix-write: copies the table into the documents"
	@echo "make test-aarch64  what can be tested of an aarch64 build under qemu-user"
	@echo "make large      weights of 3 GiB: encrypted, restored, loaded, compiled and run, with the memory it takes"
	@echo "make bench      loading against the plaintext file, as a table; make bench-models: the same with real models"
	@echo "make dist       a Debian package and a tarball in build/dist/packages; make test-dist: unpacked, and clients built against them"
	@echo "make setup      only what the others need; make dev, asan, tsan, release: only build"
	@echo "make check      layers, sizes, public functions; make docs: docs/api.md anew"
	@echo "make clean      builds; make distclean: downloads too"

demo: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target ortcrypt ortcrypt_reference_ep find_plaintext
	@tools/demo.sh build/release

test: dev
	ctest --test-dir build/dev -j$(JOBS) --output-on-failure -R '$(TESTS)'

test-asan: asan
	ctest --test-dir build/asan -j$(JOBS) --output-on-failure -R '$(TESTS)'

# Only the tests labelled `tsan`: threads of ours, with what they read and write.
test-tsan: tsan
	ctest --test-dir build/tsan -j$(JOBS) --output-on-failure -L '^tsan$$' -R '$(TESTS)'

# Crash safety at every cut point (docs/crash-safety.md).
crash: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target crash_tools
	ORTCRYPT_BUILD=build/release PYTHONDONTWRITEBYTECODE=1 python3 tests/faults/crash.py $(CRASH)

# Every pinned runtime and EP (tests/matrix); fails when README.md and docs/support.md say something else. MATRIX="--runtime 1.30.0 --ep QNN" is a part.
matrix matrix-write: SETUP_FLAGS = --runtime all --eps
matrix-write: MATRIX += --write
matrix matrix-write: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target matrix_tools
	ORTCRYPT_BUILD=build/release PYTHONDONTWRITEBYTECODE=1 build/deps/venv/bin/python tests/matrix/matrix.py --jobs $(JOBS) $(MATRIX)

# Cross-built, under qemu-user, with libraries of Debian's arm64 and the aarch64 ONNX Runtime (CONTRIBUTING.md).
test-aarch64: setup
	@tools/aarch64.py --jobs $(JOBS)

# Weights of 3 GiB, for real: disk for three copies, memory for two. LARGE="--gib 20 --only-store" is a bundle of 20 GiB that is never loaded.
large: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target ortcrypt ortcrypt_reference_ep
	PYTHONDONTWRITEBYTECODE=1 build/deps/venv/bin/python tests/large/large.py --build build/release $(LARGE)

# Side-by-side measurements, under 40 minutes: BENCH="--minutes 10" or BENCH="--mib 64 --runs 1" makes them short; bench-write: docs/performance.md and its plot anew.
bench bench-write: SETUP_FLAGS = --runtime 1.24.4
bench-write: BENCH_WRITE = --write
bench bench-write: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target ortcrypt bench_load bench_compile bench_read ortcrypt_reference_ep
	PYTHONDONTWRITEBYTECODE=1 build/deps/venv/bin/python bench/bench.py --build build/release $(BENCH_WRITE) $(BENCH)

# Takes two to four minutes; docs/performance.md has its table.
bench-models: setup
	@cmake --preset release --log-level=NOTICE
	cmake --build --preset release -j$(JOBS) --target ortcrypt bench_load
	PYTHONDONTWRITEBYTECODE=1 build/deps/venv/bin/python bench/bench_models.py --build build/release $(BENCH)

dist: setup
	packaging/make_dist.sh $(JOBS)

test-dist: dist
	tests/packaging/test_dist.sh

# The tests also want a runtime without the callbacks, and the execution providers that people install (150 MB more to fetch).
test test-asan test-tsan: SETUP_FLAGS = --runtime 1.24.4 --eps

setup:
	@tools/setup $(SETUP_FLAGS)

dev asan tsan release: setup
	@cmake --preset $@ --log-level=NOTICE
	cmake --build --preset $@ -j$(JOBS)

# Layers, sizes, the list of public functions, exported symbols.
check: dev
	ctest --test-dir build/dev -j$(JOBS) --output-on-failure -R '^check/'

# Writes docs/api.md anew from the public headers.
docs:
	python3 tools/api_list.py --write

# Keeps what was downloaded (build/deps, build/cache); distclean does not.
clean:
	rm -rf build/dev build/asan build/tsan build/release build/dist build/bench

distclean:
	rm -rf build
