# `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := $(CURDIR)/.bin
GOLANGCI_LINT := $(shell sed -n 's/^GOLANGCI_LINT=//p' .ci/run)

.PHONY: help build release demo test race lint fmt bench bench-compare bench-overload bench-versus bench-quick bench-cluster fuzz dashboards demo-load gateway-demo soak scale clusters accuracy ci clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the server as bin/oauth-server
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o bin/oauth-server ./cmd/oauth-server

# The same revision and the same Go give the same bytes, in any directory. A release knows its
# revision, or is not built.
PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
release: ## Build dist/: binaries, bills of materials, an image, man pages, completions, checksums
	rm -rf dist
	@set -e; for platform in $(PLATFORMS); do \
	  binary=dist/oauth-server-$$platform; echo $$binary; \
	  CGO_ENABLED=0 GOOS=$${platform%-*} GOARCH=$${platform#*-} GOAMD64=v1 GOARM64=v8.0 \
	    go build -buildvcs=true -trimpath -ldflags="-s -w" -o $$binary ./cmd/oauth-server; \
	  go version -m $$binary | grep -q vcs.revision= || { echo "no revision: build from a git clone" >&2; exit 1; }; \
	  go -C lab run ./cmd/sbom ../$$binary > $$binary.cdx.json; \
	done
	go -C lab run ./cmd/image $(CURDIR)/dist/image $(CURDIR)/dist/oauth-server-linux-{amd64,arm64}
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) go test ./internal/cli -run '^TestManual$$' -count=1 -man $(CURDIR)/dist/man/man1
	@mkdir dist/completions
	@set -e; for shell in bash zsh fish powershell; do \
	  go run ./cmd/oauth-server completion $$shell > dist/completions/oauth-server.$$shell; \
	done
	cd dist && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

demo: ## Run the server with demo clients and a demo user, in a temporary store
	go run ./cmd/oauth-server serve --demo

test: ## Run all tests, of the server and of lab/
	go test ./...
	go -C lab test ./...

race: ## Run all tests with the race detector (of the simulations a part)
	go test -race ./...
	go -C lab test -race ./...

$(BIN)/golangci-lint: .ci/run
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)

lint: $(BIN)/golangci-lint ## Check formatting, style and import directions
	$(BIN)/golangci-lint fmt --diff
	$(BIN)/golangci-lint run ./...
	cd lab && $(BIN)/golangci-lint run ./...

fmt: $(BIN)/golangci-lint ## Format the code
	$(BIN)/golangci-lint fmt

CLUSTER_FIGURES = Numbers|FarBelow|FewCommands|ManyKeys|StoreAway|Outage|WrongClocks|Newcomer|WritesFail|OneStatement
bench-cluster: ## Print how exactly many instances keep one limit (simulated time)
	@set -o pipefail; go test ./internal/syncer -run '$(CLUSTER_FIGURES)' -numbers -v \
	  | grep -v -e '^=== ' -e '^ *--- '
	go test ./internal/syncer -run '^$$' -bench RequestPath -benchtime 1x

bench: ## Measure decisions, tokens, abuse and sharing beside the peers; write docs/measurements.md (17 minutes)
	lab/run

bench-compare: ## Compare the last `make bench` with the committed one
	@git rev-parse -q --verify HEAD >/dev/null
	@! git diff --quiet HEAD -- lab/results/bench.txt || { echo 'lab/results/bench.txt is the committed one: run make bench first' >&2; exit 1; }
	go -C lab tool benchstat committed=<(git show HEAD:lab/results/bench.txt) now=results/bench.txt

OVERLOAD ?=
bench-overload: ## Measure an overloaded server; write docs/measurements.md (5 minutes; OVERLOAD='-controls off -loads 0.5,12' for a part)
	go -C lab build -o $(BIN)/overload ./cmd/overload
	cd lab && taskset -c 1 $(BIN)/overload $(OVERLOAD)
	go -C lab run ./cmd/report

PARTS ?=
bench-versus: ## Compare two builds of the server by turns (OLD=binary NEW=binary; needs MONGODB_TEST_URI; 20 minutes; PARTS=Start for a part)
	lab/versus $(abspath $(OLD)) $(abspath $(NEW)) $(PARTS)

bench-quick: ## Run every benchmark of the server's packages, each for a tenth of a second (5 minutes)
	go test -run '^$$' -bench . -benchtime 100ms -benchmem ./...

FUZZTIME ?= 30s
fuzz: ## Run each fuzz target for FUZZTIME (30s, or 5000x)
	FUZZCACHE=$$(go env GOCACHE)/fuzz/oauth-server .ci/fuzz $(FUZZTIME)

dashboards: ## Write dashboards/*.json, the rules for Kubernetes, and the tables of docs/metrics.md
	go -C lab test ./dashboards -run TestFiles -update
	go -C lab test ./deploycheck -run '^TestPrometheusRule$$' -update
	go test ./internal/observe/metrics -run TestDocs -update

LOAD ?= 90s
PICTURES ?=
demo-load: ## Run servers and Prometheus under load for LOAD (90s); draw charts to PICTURES (a new directory)
	@set -e; if [ -z "$${MONGODB_TEST_URI:-}" ]; then \
	  MONGODB_TEST_URI=$$(.ci/mongo-test-server); export MONGODB_TEST_URI; \
	  trap '.ci/mongo-test-server stop' EXIT; \
	fi; \
	go -C lab run ./cmd/demo-load -for $(LOAD) -pictures "$(abspath $(PICTURES))"

gateway-demo: ## Send the same load to a Keycloak without and with a gateway; draw docs/pictures/gateway-keycloak.svg
	@set -e; if [ -z "$${KEYCLOAK_TEST_URL:-}" ]; then \
	  KEYCLOAK_TEST_URL=$$(.ci/keycloak-test-server); export KEYCLOAK_TEST_URL; \
	  trap '.ci/keycloak-test-server stop' EXIT; \
	fi; \
	go -C lab run ./cmd/gateway-demo

SOAK ?= 10m
soak: ## Attack a server for SOAK (10m) beside good clients; fail if these suffer
	go -C lab run ./cmd/soak -duration $(SOAK)

SCALE ?=
scale: ## Measure what clients, policies and sign-ins cost; write docs/measurements.md (SCALE=small writes nothing)
	go -C lab run ./cmd/scale -parts '$(PARTS)' $(if $(filter small,$(SCALE)),-small)
	go -C lab run ./cmd/report

clusters: ## Simulate clusters; write docs/measurements.md and its charts (10 minutes)
	go -C lab test ./clusters -run '^TestStudies$$' -timeout 1h -update
	go -C lab run ./cmd/report

accuracy: ## Compare the algorithms of rate limiting; write docs/measurements.md and its charts (a minute)
	go -C lab test ./accuracy -run '^TestStudies$$' -timeout 1h -update
	go -C lab run ./cmd/report

ci: ## Run all that CI runs
	.ci/run

clean: ## Remove the built binaries and the linter
	rm -rf bin dist .bin
