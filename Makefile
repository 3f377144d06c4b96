# One command each: `make demo`, `make test`. Everything they need is installed by `tools/setup.sh`.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
BUILD := build/release
BENCH ?= plan
FUZZ_RUNS ?= 100000

.PHONY: demo test lint bench soak fuzz ci setup setup-dev build clean

demo: setup
	cmake --preset release -DTESSERA_TESTS=OFF -DTESSERA_BENCH=OFF
	cmake --build --preset release --target tessera -j $(JOBS)
	@mkdir -p out
	@for job in qwen3-next-80b deepseek-v3; do \
	  echo; echo "== tessera plan examples/$$job.yaml"; echo; \
	  $(BUILD)/tessera plan examples/$$job.yaml -o out/$$job.plan.yaml --trace out/$$job.trace.json || exit 1; \
	done

build: setup
	cmake --preset release -DTESSERA_TESTS=ON -DTESSERA_BENCH=ON
	cmake --build --preset release -j $(JOBS)

test: build
	ctest --preset release -j $(JOBS)
	.venv/bin/python -m pytest -q tests/python
	tools/test_torch.sh

lint: setup-dev
	tools/lint.sh

bench: setup
	@cmake --preset release -DTESSERA_TESTS=ON -DTESSERA_BENCH=ON > build/bench-configure.log 2>&1 || { cat build/bench-configure.log; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target bench_$(BENCH) tessera > build/bench-build.log 2>&1 || { cat build/bench-build.log; exit 1; }
	@$(BUILD)/bench/bench_$(BENCH)

# The large counts: 100,000 mutants per fuzz target, and ten times and more of what the differential tests run.
soak: fuzz build
	TESSERA_SOAK=1 ctest --preset release

fuzz: setup-dev
	tools/fuzz.sh $(FUZZ_RUNS)

ci:
	.ci/run

setup:
	@tools/setup.sh
	@mkdir -p build

setup-dev:
	@tools/setup.sh --dev
	@mkdir -p build

clean:
	rm -rf build out
