# rocketd. `make help` prints the targets. Only Go is needed for run, build, check, race, fuzz;
# test, oracle and bench also need a JDK and Maven (installed when missing, or named).
GO      ?= go
PREFIX  ?= /usr/local
# Names of fixed length: what git abbreviates by itself differs from clone to clone, and so would the binary.
VERSION ?= $(shell git describe --tags --always --abbrev=12 2>/dev/null || echo dev)
COMMIT  ?= $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
FUZZTIME ?= 60s
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help run build install check unit test java conformance race-conformance oracle race fuzz bench bench-quick gobench fmt tidy clean vulnerabilities reproducible

help: ## print this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start a name server (9876) and a broker (10911) with the store in ./data
	./bin/rocketd standalone

build: ## build ./bin/rocketd
	$(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/rocketd ./cmd/rocketd

install: build ## install rocketd, and mqnamesrv and mqbroker that start it, under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 bin/rocketd $(DESTDIR)$(PREFIX)/bin/rocketd
	rm -f $(DESTDIR)$(PREFIX)/bin/mqnamesrv $(DESTDIR)$(PREFIX)/bin/mqbroker
	install -m 0755 cmd/rocketd/mqserver $(DESTDIR)$(PREFIX)/bin/mqnamesrv
	install -m 0755 cmd/rocketd/mqserver $(DESTDIR)$(PREFIX)/bin/mqbroker

fmt: ## format the Go sources
	gofmt -l -w $(shell git ls-files '*.go')

tidy: ## tidy go.mod of the product and of the client cases
	$(GO) mod tidy
	cd conformance/client && $(GO) mod tidy && $(GO) mod tidy -modfile=go.newest.mod

check: ## gofmt, vet, staticcheck, govulncheck, unit tests and house rules; needs nothing but Go
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt: run make fmt:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags conformance ./...
	$(GO) tool staticcheck -tags conformance ./...
	GO=$(GO) ./conformance/vulnerabilities
	$(GO) test ./...

vulnerabilities: ## govulncheck alone; a finding fails, a database out of reach is said loudly
	GO=$(GO) ./conformance/vulnerabilities

reproducible: ## build twice, in different folders and caches, and compare the bytes
	./conformance/reproducible '$(VERSION)' '$(COMMIT)'

unit: ## the unit tests alone
	$(GO) test ./...

race: ## the unit tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race ./...

test: check race reproducible conformance ## everything: check, race, reproducible, and stock clients and mqadmin against rocketd

java: ## make sure that a JDK and Maven are there
	@./conformance/java/ensure

conformance: java ## stock clients, mqadmin and recordings against rocketd
	./conformance/run rocketd

race-conformance: java ## the same with rocketd built for the race detector; PKG=./conformance/tls: those cases alone
	./conformance/race $(PKG)

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
