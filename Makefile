# Everything a developer or CI runs is a target here. `make run` and `make test` need only Go, gcc, g++ and make.
SHELL := /bin/bash
GO ?= go
BIN := bin/skade-pg
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -X github.com/nordisk/skade-pg/cmd/skade-pg/cli.version=$(VERSION)
# The packages that build without cgo: the library.
CORES := ./catalog/... ./warehouse/... ./liveset/... ./changelog/... ./lookup/... ./lineage/... ./internal/... ./examples/...

.PHONY: all build run test test-cores test-race soak test-clients judges bench lint fmt clean need
all: build

# need says in one line what is missing.
need:
	@command -v $(GO) >/dev/null || { echo "skade-pg needs Go 1.26 or newer (command 'go'): install it from go.dev or your distribution" >&2; exit 1; }
	@command -v gcc >/dev/null || { echo "skade-pg needs gcc: e.g. apt-get install gcc g++" >&2; exit 1; }
	@command -v g++ >/dev/null || { echo "skade-pg needs g++: e.g. apt-get install gcc g++" >&2; exit 1; }

build: need
	@[ -n "$$(ls -A $$($(GO) env GOCACHE) 2>/dev/null | head -1)" ] || echo "first build: compiling DuckDB's bindings and PostgreSQL's parser, a few minutes" >&2
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/skade-pg

# run starts a gateway on ./skade-data with the live demo and prints the psql line to paste.
run: build
	$(BIN) serve --demo

test: need test-cores
	$(GO) test -count=1 ./cmd/... ./engine/... ./pgwire/... ./sqlfuncs/... ./test

# test-cores proves that the cores are a library: no cgo.
test-cores: need
	CGO_ENABLED=0 $(GO) test -count=1 $(CORES)

test-race: need
	$(GO) test -race -count=1 ./...

# soak checks the laws of change on random histories for DURATION.
DURATION ?= 10m
soak: need
	CGO_ENABLED=0 SKADE_SOAK=$(DURATION) $(GO) test -count=1 -timeout 0 -run '^TestLaws$$' -v ./changelog

# test-clients runs the outside judges; test/setup.sh installs what they need.
test-clients: build
	test/setup.sh
	test/clients/run smoke

judges: build
	test/setup.sh
	test/clients/run full

bench: build
	test/setup.sh bench
	test/bench/run

lint: need
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "gofmt: the files above are not formatted" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin skade-data
