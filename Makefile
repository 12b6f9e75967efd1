# rocketd. `make help` prints the targets. Only Go is needed for run, build, check, race, fuzz;
# test, oracle and bench also need a JDK and Maven (installed when missing, or named).
GO      ?= go
PREFIX  ?= /usr/local
VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 60s
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help run build install check unit test java conformance oracle race fuzz bench bench-quick gobench fmt tidy clean

help: ## print this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start a name server (9876) and a broker (10911) with the store in ./data
	./bin/rocketd standalone

build: ## build ./bin/rocketd
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/rocketd ./cmd/rocketd

install: build ## install rocketd, and mqnamesrv and mqbroker as names of it, under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 bin/rocketd $(DESTDIR)$(PREFIX)/bin/rocketd
	ln -sf rocketd $(DESTDIR)$(PREFIX)/bin/mqnamesrv
	ln -sf rocketd $(DESTDIR)$(PREFIX)/bin/mqbroker

fmt: ## format the Go sources
	gofmt -l -w $(shell git ls-files '*.go')

tidy: ## tidy go.mod of the product and of the client cases
	$(GO) mod tidy
	cd conformance/client && $(GO) mod tidy && $(GO) mod tidy -modfile=go.newest.mod

check: ## gofmt, vet, staticcheck, unit tests and house rules; needs nothing but Go
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt: run make fmt:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags conformance ./...
	$(GO) tool staticcheck -tags conformance ./...
	$(GO) test ./...

unit: ## the unit tests alone
	$(GO) test ./...

race: ## the unit tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

test: check race conformance ## everything: check, race, and stock clients and mqadmin against rocketd

java: ## make sure that a JDK and Maven are there
	@./conformance/java/ensure

conformance: java ## stock clients, mqadmin and recordings against rocketd
	./conformance/run rocketd

oracle: java ## the same cases against the official server, to prove the cases
	./conformance/run official

fuzz: ## every fuzz target for FUZZTIME (60s) each
	./conformance/fuzz $(FUZZTIME)

bench: java build ## rocketd and the official server, interleaved in one run; prints a table with ratios
	$(GO) run ./conformance/bench

bench-quick: java build ## the same in under eight minutes
	$(GO) run ./conformance/bench -quick

gobench: ## the Go benchmarks of the hot paths
	$(GO) test -run '^$$' -bench . -benchmem ./protocol/... ./remoting/... ./store/... ./broker/...

clean: ## remove build results (not ./data)
	rm -rf bin build
