# make demo   the main job, on this machine, in about a minute (Go and git only)
# make test   everything that needs no cloud account
# make help   the rest

GO      ?= go
# Relative on purpose: the path of the checkout may contain spaces.
BIN     := bin
TOOLS   := .bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
export GOFLAGS ?= -buildvcs=false

.PHONY: help build demo test lint unit tools nightly model model-deep sim footprint bench-checkpoints bench-failover clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-17s %s\n", $$1, $$2}'

build: ## the binary, at bin/sf2loki-ha
	@echo "building bin/sf2loki-ha (the first build compiles the AWS, GCP and Kubernetes clients: a few minutes on two cores)"
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/sf2loki-ha ./cmd/sf2loki-ha

demo: build ## two replicas, one bucket, and a leader that dies
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/demo ./e2e/cmd/demo
	@$(BIN)/demo -binary $(BIN)/sf2loki-ha

# Test servers and linters, from source. The stamp is newer than what they are
# built from.
tools: $(TOOLS)/.built $(TOOLS)/.built-kube ## the servers and linters that tests run, at .bin/

$(TOOLS)/.built: tools/go.mod tools/go.sum
	@echo "building versitygw, fake-gcs-server and staticcheck from source (about 4 minutes on two cores, once)"
	@mkdir -p $(TOOLS)
	@cd tools && $(GO) build -trimpath -o ../$(TOOLS)/ github.com/versity/versitygw/cmd/versitygw
	@echo "  versitygw done"
	@cd tools && $(GO) build -trimpath -o ../$(TOOLS)/ github.com/fsouza/fake-gcs-server
	@echo "  fake-gcs-server done"
	@cd tools && $(GO) build -trimpath -o ../$(TOOLS)/ honnef.co/go/tools/cmd/staticcheck
	@echo "  staticcheck done"
	@touch $@

$(TOOLS)/.built-kube: tools/kube/go.mod tools/kube/go.sum
	@echo "building kube-apiserver and etcd from source (about 8 minutes on two cores, once)"
	@mkdir -p $(TOOLS)
	@cd tools/kube && $(GO) build -trimpath -o ../../$(TOOLS)/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	@echo "  kube-apiserver done"
	@cd tools/kube && $(GO) build -trimpath -o ../../$(TOOLS)/etcd go.etcd.io/etcd/server/v3
	@echo "  etcd done"
	@touch $@

lint: tools ## gofmt, go vet, staticcheck
	@git ls-files --error-unmatch go.mod >/dev/null || { echo "make lint needs a git checkout"; exit 1; }
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); if [ -n "$$unformatted" ]; then echo "gofmt -w these files:"; echo "$$unformatted"; exit 1; fi
	@$(GO) vet ./...
	@$(TOOLS)/staticcheck ./...
	@$(GO) vet -tags clientgo ./internal/failoverbench ./e2e/cmd/bench-failover

unit: build tools ## the tests alone
	@echo "go test -race ./... (the first run compiles everything with the race detector: several minutes)"
	@mkdir -p .cache && $(GO) build -o .cache/testsum ./internal/ci/testsum
	@{ $(GO) test -json -tags clientgo -timeout 5m -run EverybodyFailsOver ./internal/failoverbench; \
	   $(GO) test -json -race -p 1 -timeout 20m ./...; echo "go test ended with $$?"; } | .cache/testsum

test: lint unit ## everything that needs no cloud account

nightly: test ## what does not fit into CI
	@$(BIN)/sf2loki-ha --version
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/demo ./e2e/cmd/demo
	@$(BIN)/demo -binary $(BIN)/sf2loki-ha -rounds 20
	@$(MAKE) --no-print-directory model model-deep
	@echo "two pairs behind a faulty network for 10 minutes, side by side"
	@CHAOS=10m $(GO) test -race -count=1 -timeout 30m -v -run BehindAFaultyNetwork ./e2e

model: ## the Spin models, exhaustively, and their mutants (needs spin and gcc)
	@$(GO) run ./internal/ci/model

model-deep: ## the same models with wider bounds, up to 7 GB of memory
	@$(GO) run ./internal/ci/model -deep

footprint: build ## what each dependency costs in size and memory
	@$(GO) run ./internal/ci/footprint

SEEDS ?= 100000
FIRST ?= 1
sim: ## SEEDS=100000 histories of the simulator from seed FIRST=1 on (some minutes), or what happens in one: SEED=n
	@mkdir -p .cache && $(GO) build -o .cache/sim ./internal/sim/cmd/sim
	@.cache/sim $(if $(SEED),-first $(SEED) -trace,-seeds $(SEEDS) -first $(FIRST))

bench-checkpoints: tools ## commits a second, bytes and memory of the checkpoint document
	@$(GO) test -run '^$$' -bench Commit -benchtime 2s ./checkpoint

# Its figures in docs/ are those of: make bench-failover OUT=docs
ROUNDS ?= 60
OUT    ?= .cache/bench-failover
bench-failover: $(TOOLS)/.built ## time without a leader after a crash, ours and client-go's (3 minutes; ROUNDS=60 crashes, figures to OUT=DIR)
	@$(GO) build -trimpath -tags clientgo -o $(BIN)/bench-failover ./e2e/cmd/bench-failover
	@$(BIN)/bench-failover -rounds $(ROUNDS) -out $(OUT)
	@echo "figures and picture: $(OUT)/failover.json, $(OUT)/failover.svg"

clean: ## remove what was built here
	rm -rf bin .bin .cache
