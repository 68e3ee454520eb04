# Two commands for newcomers: `make demo` and `make test`. Everything they need is fetched by tools/setup.
JOBS ?= 2
TESTS ?= .

.PHONY: demo test bench setup dev asan tsan release test-asan test-tsan check docs clean distclean

demo: release
	tools/demo.sh build/release

test: dev
	ctest --test-dir build/dev -j$(JOBS) --output-on-failure -R '$(TESTS)'

test-asan: asan
	ctest --test-dir build/asan -j$(JOBS) --output-on-failure -R '$(TESTS)'

# Only the tests labelled `tsan`: threads of ours, with what they read and write.
test-tsan: tsan
	ctest --test-dir build/tsan -j$(JOBS) --output-on-failure -L '^tsan$$' -R '$(TESTS)'

# Side-by-side measurements: BENCH="--mib 64 --runs 1" makes them short.
bench: release
	build/deps/venv/bin/python bench/bench.py --build build/release $(BENCH)

setup:
	@tools/setup

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
	rm -rf build/dev build/asan build/tsan build/release build/demo build/bench

distclean:
	rm -rf build
