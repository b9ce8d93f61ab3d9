# Every task of the project. `make` lists them; `make demo` and `make test` need nothing to be installed first.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
ifndef TOGETHER
.NOTPARALLEL:
endif

VENV ?= .venv
VENV_312 ?= .venv-3.12
# 3.11 first: it is the version that the PyTorch below is tested with.
PYTHONS ?= 3.11 3.12 3.13 3.10 3.14
# What the integration tests run PyTorch with; empty leaves those tests out: make test TORCH=
TORCH ?= torch==2.13.0
# Likewise JAX, with what its kernels of Mosaic GPU import.
JAX ?= jax==0.10.2 absl-py
# Likewise the programs that exports are opened with: llnl-hatchet, Perfetto, speedscope, Chromium.
VIEWERS ?= yes
JOBS ?= $(shell nproc)
INSTALL ?= -e '.[dev]'
# Many tests wait for processes that they start, so one more runs than there are cores.
WORKERS ?= $(shell expr $(JOBS) + 1)
# A test that waits for ever says where; the longest takes 20 s on a quiet machine.
PYTEST := pytest --timeout=600 -n $(WORKERS) --dist loadfile
OUT ?= build/benchmarks

BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export BRAGG_CONSUMERS_DIR ?= $(CURDIR)/build/consumers
export BRAGG_FAKES_DIR ?= $(CURDIR)/build/native/fakes

NATIVE_SOURCES := $(shell find native -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name CMakeLists.txt)
FORMATTED = $(filter %.cpp %.h %.c,$(NATIVE_SOURCES)) $(wildcard benchmarks/*.cpp)
WEB_STATIC := src/bragg/views/web/static
PYTHON_TREES := src tests benchmarks tools

.PHONY: help build demo test lint format types layers fakes native-test tsan asan python-test python-test-312 bench docs wheels clean fresh web web-check web-build

help:  ## list the tasks
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

$(VENV)/.tools: tools/make_venv.sh tools/find_python.sh
	tools/make_venv.sh $(VENV) $(PYTHONS)
	touch $@

$(VENV)/.installed: $(VENV)/.tools pyproject.toml CMakeLists.txt $(NATIVE_SOURCES)
	pip install -q --no-build-isolation $(INSTALL)
	touch $@

build: $(VENV)/.installed  ## make the environment in .venv and install bragg there, editable

demo: build  ## record and show a small program
	bragg demo

# Most of the first ones keep one core busy, so two of them run at a time.
test: build  ## everything that must hold
	$(MAKE) --no-print-directory -j 2 --output-sync=target TOGETHER=yes native-test lint types layers docs web tsan asan
	$(MAKE) --no-print-directory python-test python-test-312

lint: build  ## style of Python and C++
	ruff check $(PYTHON_TREES)
	ruff format --check $(PYTHON_TREES)
	clang-format --dry-run --Werror $(FORMATTED)

format: build  ## apply the style
	ruff check --fix $(PYTHON_TREES)
	ruff format $(PYTHON_TREES)
	clang-format -i $(FORMATTED)

types: build  ## mypy --strict
	mypy

layers: build  ## who may import whom
	lint-imports

web:  ## types, style, tests and build of the viewer; the build must be the committed one
	@if tools/install_npm.sh; then $(MAKE) --no-print-directory web-check; else [ -z "$${CI:-}" ]; fi

web-check: web/node_modules/.installed
	cd web && npm run --silent check && npm run --silent test -- --reporter=dot && npm run --silent build -- --logLevel warn
	@for file in build/web/*; do gzip -dc "$(WEB_STATIC)/$${file##*/}.gz" | cmp -s - "$$file" || \
		{ echo "$(WEB_STATIC) is not what web/ builds; run: make web-build"; exit 1; }; done

web-build: web/node_modules/.installed  ## build the viewer into the package
	cd web && npm run --silent build -- --logLevel warn
	@for file in build/web/*; do gzip -9nc "$$file" >"$(WEB_STATIC)/$${file##*/}.gz"; done

web/node_modules/.installed: web/package.json web/package-lock.json
	tools/install_npm.sh
	cd web && npm ci --silent
	touch $@

# native-build NAME SANITIZER: the tests, the core and the fake drivers in build/NAME
define native-build
cmake -S . -B build/$(1) -G Ninja -DBRAGG_BUILD_PYTHON=OFF -DBRAGG_BUILD_TESTS=ON -DBRAGG_SANITIZE=$(2) --log-level=WARNING
ninja -C build/$(1) -j $(JOBS) --quiet
endef

fakes: $(VENV)/.tools
	$(call native-build,native,)

native-test: fakes  ## C++ unit tests, against the fake drivers
	build/native/bragg_native_tests

tsan: $(VENV)/.tools  ## the same under ThreadSanitizer
	$(call native-build,tsan,thread)
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 build/tsan/bragg_native_tests
	build/tsan/fakes/fake_selftest

asan: $(VENV)/.tools  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call native-build,asan,address)
	ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 build/asan/bragg_native_tests
	build/asan/fakes/fake_selftest

# What is large and not everyone's: PyTorch, and the programs that open exports.
$(VENV)/.extras: pyproject.toml tools/install_viewers.sh | $(VENV)/.installed
	if [ -n "$(TORCH)" ]; then pip install -q $(TORCH); fi
	if [ -n "$(JAX)" ]; then pip install -q $(JAX); fi
	if [ -n "$(VIEWERS)" ]; then pip install -q --no-build-isolation -e '.[viewers]' && tools/install_viewers.sh $(BRAGG_CONSUMERS_DIR); fi
	touch $@

python-test: fakes $(VENV)/.installed $(VENV)/.extras  ## Python tests, with PyTorch and the programs that open exports
	$(PYTEST)

# Files are read and analysed alike on any Python, so golden and property tests run on one, those marked so, and the slow ones.
python-test-312: fakes  ## Python tests on Python 3.12, on the package as users install it
	@if tools/find_python.sh 3.12 >/dev/null; then \
	  $(MAKE) --no-print-directory $(VENV_312)/.installed VENV=$(VENV_312) PYTHONS=3.12 INSTALL='.[test]'; \
	  $(VENV_312)/bin/$(PYTEST) -m "not cuda and not once and not slow" tests/unit tests/integration tests/kernels; \
	else \
	  echo "Python 3.12 was not found: its tests are left out"; \
	fi

bench: build  ## measure what bragg costs, into build/benchmarks (parts that need a GPU are left out where there is none)
	python benchmarks/run_all.py --out $(OUT)

docs: build  ## the documentation's site, into build/site; a broken link or anchor fails
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

wheels:  ## wheels for each CPython that is here, and one of pure Python, into dist
	tools/make_wheels.sh dist $(sort $(PYTHONS))

clean:  ## remove everything that was built
	rm -rf build web/node_modules $(VENV) $(VENV_312) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

fresh:  ## make demo and make test in a new clone and an empty environment
	directory=$$(mktemp -d) && trap 'rm -rf $$directory' EXIT && git clone -q . $$directory/bragg && cd $$directory/bragg && \
	  env -i HOME=$$HOME PATH=/usr/local/bin:/usr/bin:/bin $(MAKE) demo test
