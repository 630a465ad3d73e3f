# Everyday targets. CI runs .ci/run, which calls `check` and `test` among others.
GO ?= go
FUZZTIME ?= 10m

.PHONY: check test conformance race fuzz soak sanitize mutate replay zoo dynamic sweep gpu generate fmt

## check: formatting, vet, staticcheck, dead code, generated files up to date, clean module file
check:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run: make fmt'; exit 1; }
	@./scripts/format_cpp.sh --check || { echo 'run: make fmt'; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	./scripts/deadcode.sh
	$(GO) mod tidy -diff
	$(GO) test ./internal/commands ./schema/... ./scripts/... -run Generated -count=1

## test: every test that this machine can run
test:
	$(GO) test ./...

## conformance: ONNX's backend tests on the emulator, all of them in every precision
conformance:
	RAMMER_CONFORMANCE_SHARE=1 $(GO) test ./internal/conformance -timeout 60m

## race: the race detector over the packages that start goroutines
race:
	$(GO) test -race ./ir/eval ./graphopt ./internal/outdir ./internal/engine ./profiler/timing ./internal/driver ./internal/runner

## fuzz: each fuzz target for FUZZTIME, or all of them together for TOTAL seconds
fuzz:
	TOTAL=$(TOTAL) ./scripts/fuzz.sh $(FUZZTIME)

## soak: compiles, runs and verifies models for SOAKTIME while processes are killed at random; nothing half written may be left
soak:
	$(GO) build -o .soak/rammerc ./cmd/rammerc
	$(GO) run ./scripts/soak -rammerc .soak/rammerc -target $(or $(TARGET),emu) -for $(or $(SOAKTIME),1h) testdata/models/digits_*.onnx

## sanitize: abuses emitted libraries of all digits models and kinds of plans under AddressSanitizer and UBSan, and looks for
## races with ThreadSanitizer in programs that leave out an order between threads, and in those that do not
sanitize:
	RAMMER_SANITIZE=all $(GO) test ./internal/systemtest/programs ./internal/systemtest/libraries -run ThreadSanitizer -count=1
	RAMMER_SANITIZE=all $(GO) test ./internal/systemtest/attacks -run TestSanitizers -count=1 -timeout 3h

## mutate: plants errors one at a time; fails if the tests of their packages do not notice one
mutate:
	$(GO) run ./scripts/mutate $(if $(ONLY),-only "$(ONLY)")

## replay: differences of emitted sources and plans against REV for every bundled model
replay:
	./scripts/replay.sh $(REV)

## zoo: the models of scripts/zoo/models.txt, compiled, run and compared with ONNX Runtime; needs Python with onnxruntime
zoo:
	$(GO) build -o .zoo/rammerc ./cmd/rammerc
	$(or $(RAMMER_PYTHON),python3) scripts/zoo/zoo.py --rammerc .zoo/rammerc --cache .zoo --engine $(or $(ENGINE),eval) --table docs/ZOO.md

## dynamic: models with ranges and lists of extents, compiled once each, compared with ONNX Runtime; needs these, too
dynamic:
	$(GO) build -o .zoo/rammerc ./cmd/rammerc
	$(or $(RAMMER_PYTHON),python3) scripts/zoo/dynamic.py prepare --cache .zoo .zoo/cases
	$(or $(RAMMER_PYTHON),python3) scripts/zoo/dynamic.py check --rammerc .zoo/rammerc --out .zoo/dynamic --table docs/DYNAMIC.md .zoo/cases

## sweep: models of torchvision, timm, transformers and scikit-learn (scripts/zoo/sweep.txt) as zoo does; needs these, too
sweep:
	$(GO) build -o .zoo/rammerc ./cmd/rammerc
	$(or $(RAMMER_PYTHON),python3) scripts/zoo/sweep.py --rammerc .zoo/rammerc --cache .zoo/sweep --rows .zoo/sweep/rows.jsonl --table docs/SWEEP.md

## gpu: build, correctness, compute-sanitizer, timing and peers on the GPU of this machine
gpu:
	./scripts/gpu_check.sh $(or $(MODELS),testdata/models) $(or $(OUT),.gpu)

generate:
	$(GO) generate ./...

fmt:
	gofmt -w $$(git ls-files '*.go' | grep -v pb.go)
	./scripts/format_cpp.sh
