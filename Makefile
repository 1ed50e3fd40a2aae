# Plimsoll's tasks. `make demo` and `make test` are all that a fresh Debian or Ubuntu machine needs.
.PHONY: help packages demo test test-all check fuzz bench wheel clean
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= $(shell nproc)
# ccache takes an object from another build directory only where paths in its command are relative; so tools/test_matrix.py.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

help:
	@echo "make demo      build, install into .venv, profile examples/wordcount.py, show the result"
	@echo "make test      C++ tests, and the Python tests on the interpreters that are installed"
	@echo "make test-all  all sanitizers, all interpreters (provides them first), slow tests, format consumers"
	@echo "make check     layers, budgets, formatting, clang-tidy, signal safety, types"
	@echo "make fuzz      every fuzzer for FUZZ_SECONDS (60) each"
	@echo "make bench     benchmarks; needs a quiet machine to mean much"
	@echo "make wheel     a repaired wheel in wheelhouse/, tested in a clean environment"

packages:
	@tools/system_packages.sh

.venv/bin/python:
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --upgrade pip

demo: packages .venv/bin/python
	.venv/bin/python -m pip install --quiet .
	.venv/bin/python tools/gather_text.py build/demo/text.txt
	.venv/bin/plimsoll run -o build/demo/wordcount.plim examples/wordcount.py build/demo/text.txt
	.venv/bin/plimsoll show build/demo/wordcount.plim
	@echo
	@echo "Where to look next:"
	@echo "  .venv/bin/plimsoll show build/demo/wordcount.plim lines     the source, line by line"
	@echo "  .venv/bin/plimsoll show build/demo/wordcount.plim flat      functions by their own time"
	@echo "  .venv/bin/plimsoll convert build/demo/wordcount.plim -o wordcount.html"
	@echo "      a flame graph: open the page in a browser"
	@echo "  .venv/bin/plimsoll run YOUR_PROGRAM.py"

# The same compiler and flags as for the Python builds that follow, which so find their objects in ccache.
test: packages
	CXX=c++ cmake --preset release -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
	cmake --build --preset release --parallel $(JOBS)
	ctest --test-dir build/release --output-on-failure --progress --parallel $(JOBS) --output-junit tests.xml || \
	  { $(PYTHON) tools/show_failures.py build/release/tests.xml; exit 1; }
	$(PYTHON) tools/test_matrix.py

test-all:
	tools/system_packages.sh --dev
	-tools/provide_pythons.sh
	for preset in release asan ubsan tsan; do \
	  cmake --preset $$preset -DCMAKE_CXX_COMPILER_LAUNCHER=ccache && cmake --build --preset $$preset --parallel $(JOBS) && \
	  ctest --test-dir build/$$preset --output-on-failure --parallel $(JOBS) || exit 1; done
	tools/test_aarch64.sh
	$(PYTHON) tools/test_matrix.py --all --slow
	$(MAKE) wheel

check:
	tools/system_packages.sh --dev
	$(PYTHON) tools/check.py

fuzz:
	tools/system_packages.sh --dev
	tools/fuzz.sh

bench:
	tools/system_packages.sh --dev
	$(PYTHON) bench/run.py

wheel: packages .venv/bin/python
	.venv/bin/python tools/make_wheel.py

clean:
	rm -rf build .venv dist wheelhouse
