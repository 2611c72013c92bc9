# Needs Go, git, make and gcc (for the race detector); everything else is built from Go modules.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
MODULE := stepbeyond.dev/stepbeyond
IMAGE ?= stepbeyond:dev
FUZZTIME ?= 30s
RACE_ROUNDS ?= 50

# Nothing comes from the test cache: it does not see what a test reads through other processes.
ASSETS := KUBEBUILDER_ASSETS=$(BIN)/k8s
PACKAGES = go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...
RACED := ^$(MODULE)/(internal|webhook|test/integration|test/protocol|test/rotation)(/|$$)
DEMO := ^$(MODULE)/test/e2e(/|$$)
TESTREPORT := go run ./hack/testreport

##@ Everyday

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: controlplane ## Run the story on a real control plane. KEEP=1 leaves it running; MUTATE=rbac|cas|floor must fail.
	@$(ASSETS) go run ./test/e2e/demo

.PHONY: test
test: controlplane ## Run all tests: unit, schema, integration with the race detector, and the demo.
	@packages=$$($(PACKAGES)); \
	{ rc=0; \
	echo "test: unit and schema"; \
	$(ASSETS) go test -json -count=1 -timeout 20m $$(grep -Ev '$(RACED)|$(DEMO)' <<<"$$packages") || rc=1; \
	echo "test: internal, webhook and integration, with the race detector"; \
	$(ASSETS) go test -json -race -count=1 -timeout 20m $$(grep -E '$(RACED)' <<<"$$packages") || rc=1; \
	echo "test: the demo"; \
	$(ASSETS) go test -json -count=1 -timeout 10m $$(grep -E '$(DEMO)' <<<"$$packages") || rc=1; \
	exit $$rc; } | $(TESTREPORT)

.PHONY: races
races: controlplane ## Run RACE_ROUNDS rounds of each race for a grant, with the race detector.
	@$(ASSETS) RACE_ROUNDS=$(RACE_ROUNDS) go test -json -race -count=1 -timeout 6h -run Race ./test/protocol | $(TESTREPORT)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME.
	@for dir in $$(git grep --untracked -lE '^func Fuzz' -- '*_test.go' | xargs -rn1 dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' "./$$dir" | grep '^Fuzz'); do \
			echo "fuzz: $$dir $$target for $(FUZZTIME)"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "./$$dir"; \
		done; \
	done

BENCHTIME ?= 100ms
.PHONY: bench
bench: ## Compare the engine with others under one policy, and check the promised ratios.
	@go vet -C test/bench ./...
	@go test -C test/bench -count=1 -bench . -benchmem -benchtime $(BENCHTIME) .
	@go run -C test/bench ./ratios

ADMISSION ?=
.PHONY: bench-admission
bench-admission: controlplane ## Measure what admission costs on real control planes. ADMISSION='-rounds 5 -bystander 3000' is short.
	@$(ASSETS) go run ./test/cost/admission $(ADMISSION)

SESSIONS ?= 20000
.PHONY: bench-memory
bench-memory: controlplane ## Measure the manager's memory with SESSIONS sessions, and check the promised number to a GiB.
	@$(ASSETS) SESSIONS=$(SESSIONS) go test -count=1 -timeout 1h -v -run Gibibyte ./test/cost

GRANTS ?= 5000
.PHONY: bench-pending
bench-pending: controlplane ## Measure kubectl stepbeyond pending over GRANTS questions beside kubectl get, and check the promised ratio.
	@$(ASSETS) go run ./test/cost/pending -grants $(GRANTS)

.PHONY: corpora
corpora: ## Measure engine and webhook against public data in the folder CORPORA; JSON lines go to CORPORA_OUT when set.
	@[ ! -d '$(CORPORA)' ] || $(MAKE) controlplane
	@$(ASSETS) CORPORA='$(CORPORA)' CORPORA_OUT='$(CORPORA_OUT)' go run ./hack/corpora

.PHONY: chaos
chaos: controlplane ## Bring faults over real control planes and write docs/chaos.md. CHAOS_ROWS=a,b runs some.
	@$(ASSETS) go run ./test/chaos -rows '$(CHAOS_ROWS)'

.PHONY: mutants
mutants: ## Break the engine in each way of hack/mutants/patches and see that its tests notice. MUTANTS=003 tries some.
	@go run ./hack/mutants $(MUTANTS)

.PHONY: verify
verify: generate ## Generate, format, lint, vet; fail on anything that then differs from the commit.
	@echo "verify: format"
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "verify: run make fmt for:" $$unformatted; exit 1; }
	@echo "verify: the tree is as committed"
	@changed=$$(git status --porcelain); \
	[ -z "$$changed" ] || { echo "verify: after make generate the tree differs from the commit:"; echo "$$changed"; git --no-pager diff HEAD | head -n 200; exit 1; }
	@echo "verify: go.mod is tidy"
	@for module in . test/bench; do \
		diff=$$(go mod tidy -C $$module -diff) || { head -n 60 <<<"$$diff"; echo "verify: run go mod tidy in $$module"; exit 1; }; \
	done
	@echo "verify: vet"
	@go vet ./...
	@$(MAKE) lint manifests

##@ Code

.PHONY: generate
generate: $(BIN)/controller-gen ## Write deep copies, apply configurations, CRDs, the manager's role, and the generated docs.
	@echo "generate: api"
	@$(BIN)/controller-gen object:headerFile=hack/boilerplate.go.txt applyconfiguration:headerFile=hack/boilerplate.go.txt \
		crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@echo "generate: the manager's role"
	@$(BIN)/controller-gen rbac:roleName=stepbeyond-manager $(foreach dir,$(wildcard internal webhook),paths=./$(dir)/...) \
		output:rbac:artifacts:config=config/rbac
	@$(MAKE) conformance reasons facts

.PHONY: conformance
conformance: ## Write docs/conformance.md: every requirement and the tests that name it.
	@echo "conformance: docs/conformance.md"
	@go run ./hack/conformance

.PHONY: facts
facts: ## Write docs/facts.md: the class of each fact, and what each front door reads as which.
	@echo "facts: docs/facts.md"
	@go run ./hack/facts

.PHONY: coverage
coverage: controlplane ## Write docs/coverage.md: the class of everything that a real API server lists, and what is not gated.
	@echo "coverage: docs/coverage.md"
	@$(ASSETS) go run ./hack/coverage

.PHONY: reasons
reasons: ## Write docs/reasons.md: every reason, what it means and what to do next.
	@echo "reasons: docs/reasons.md"
	@go run ./hack/reasons

.PHONY: fmt
fmt: ## Format the Go code.
	@gofmt -w .

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run the linters.
	@echo "lint: golangci-lint"
	@$(BIN)/golangci-lint run

##@ Build

.PHONY: build
build: ## Build bin/manager and the kubectl plugin, bin/kubectl-stepbeyond.
	@CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/manager ./cmd/kubectl-stepbeyond

.PHONY: manifests
manifests: $(BIN)/kustomize ## Render config/default into dist/install.yaml and config/samples into dist/samples.yaml.
	@echo "manifests: dist/install.yaml dist/samples.yaml"
	@mkdir -p dist
	@$(BIN)/kustomize build config/default -o dist/install.yaml
	@$(BIN)/kustomize build config/samples -o dist/samples.yaml

VERSION ?=
URL ?=
.PHONY: krew
krew: ## Build the plugin for every platform and its krew manifest into dist/krew, of release VERSION=v1.2.3 at URL=https://...
	@go run ./hack/krew -version '$(VERSION)' -url '$(URL)'

.PHONY: docker-build
docker-build: ## Build the image IMAGE (needs docker).
	@docker build -t $(IMAGE) .

.PHONY: controlplane
controlplane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl once per version; bin/k8s points there.
	@hack/controlplane/build.sh

.PHONY: tools
tools: $(BIN)/controller-gen $(BIN)/kustomize $(BIN)/golangci-lint ## Build the pinned tools of hack/tools into bin/.

.PHONY: clean
clean: ## Remove bin/ and dist/; the control plane stays in the user's cache folder.
	@rm -rf bin dist

# Asking go build each time costs a second and is right after a change of version or of Go itself; the user's build
# cache makes it cheap for a second clone too.
# The linter is golangci-lint with the linter of the Kubernetes API conventions compiled in.
.PHONY: $(BIN)/controller-gen $(BIN)/kustomize $(BIN)/golangci-lint
$(BIN)/controller-gen: TOOL := sigs.k8s.io/controller-tools/cmd/controller-gen
$(BIN)/kustomize: TOOL := sigs.k8s.io/kustomize/kustomize/v5
$(BIN)/golangci-lint: TOOL := sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter
$(BIN)/controller-gen $(BIN)/kustomize $(BIN)/golangci-lint:
	@[ -x $@ ] || echo "tools: building $(@F)"
	@go build -C hack/tools -o $@ $(TOOL)
