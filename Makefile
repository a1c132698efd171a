# make           build, vet, lint and test
# make demo      a story with its real results, about a minute
# make test      needs Go only; uses DynamoDB Local if it is available

ARCH          ?= arm64
TESTFLAGS     ?=
FUZZTIME      ?= 5s
BIN           := $(CURDIR)/.bin
LINT_VERSION  := v2.15.0
LINT          := $(BIN)/golangci-lint-$(LINT_VERSION)
GOARCH_arm64  := arm64
GOARCH_x86_64 := amd64
HOSTARCH      := $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)
LOCALFLAGS    ?=
# The modules in this repository besides its own.
MODULES       := examples/shop otel kms internal/tools/supply
# Static, small, reproducible: see docs/decisions/0004-build-flags.md
BUILD         := CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_$(ARCH)) go build -trimpath -buildvcs=false -ldflags=-s -tags=lambda.norpc

.PHONY: all
all: build vet lint test

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

# The functions of template.yaml: cmd/NAME of examples/rides.
FUNCTIONS     := rides authorizer receipts

.PHONY: build
build: ## the bootstraps of the worker and the examples for Lambda in dist/ (ARCH=arm64 or x86_64)
	$(if $(GOARCH_$(ARCH)),,$(error ARCH is "$(ARCH)": use arm64 or x86_64))
	$(BUILD) -o dist/samekey-worker/bootstrap ./cmd/samekey-worker
	@wc -c dist/samekey-worker/bootstrap
	$(BUILD) -o dist/hello/bootstrap ./examples/hello
	@for f in $(FUNCTIONS); do (set -x; $(BUILD) -o dist/$$f/bootstrap ./examples/rides/cmd/$$f) || exit; done

.PHONY: demo
demo: ## run Rocket Rides on this machine, and inject failures and SIGKILL (Java)
	@go run ./examples/rides/demo

.PHONY: demo-hello
demo-hello: ## play the story of one key, over HTTP
	go run ./examples/hello/demo

# samekey takes the place of the shell, and minds make: a signal to either ends everything.
.PHONY: local
local: ## run template.yaml on this machine (docs/local.md; more flags in LOCALFLAGS)
	@$(MAKE) --no-print-directory build ARCH=$(HOSTARCH) >&2
	@go build -o dist/world/bootstrap ./examples/rides/cmd/world
	@go build -o $(BIN)/samekey ./cmd/samekey
	@exec $(BIN)/samekey local --with-parent --parameter Architecture=$(HOSTARCH) --parameter WorldUrl={world} \
		--process world=dist/world/bootstrap --process-url world=http://127.0.0.1:$(or $(LOCAL_WORLD_PORT),3001) \
		$(LOCALFLAGS)

.PHONY: test
test: ## all tests; REQUIRE_DYNAMODB=1 makes a missing DynamoDB Local a failure
	go test $(TESTFLAGS) ./...
	@for m in $(MODULES); do (set -x; cd $$m && go test $(TESTFLAGS) ./...) || exit; done

LOAD          ?= 10000

.PHONY: load
load: ## a queue's whole life under load, LOAD messages each; figures are printed (Java; docs/testing.md)
	QUEUETEST_LOAD=$(LOAD) go test ./internal/queuetest -run '^TestLoad$$' -v -count=1 -timeout 90m

STRESS_PKGS   ?= ./...
STRESSFLAGS   ?= -race

.PHONY: stress
stress: ## the tests of STRESS_PKGS, three times each, beside threads that burn CPU (hours; docs/testing.md)
	go run ./internal/tools/stress $(STRESSFLAGS) $(STRESS_PKGS)

.PHONY: stripe-sdks
stripe-sdks: ## the Stripe presets against Stripe's clients for Go, Python and Node (python3, npm)
	internal/tools/stripe-sdks.sh $(TESTFLAGS)

.PHONY: pictures
pictures: ## render every Mermaid diagram of the pages; a broken one fails (node, npm)
	internal/tools/mermaid.sh

.PHONY: tidy
tidy: ## fail where go.mod or go.sum of a module is not tidy
	go mod tidy -diff
	@for m in $(MODULES); do (set -x; cd $$m && go mod tidy -diff) || exit; done

.PHONY: browser
browser: ## the page of samekey ui in headless Chromium, on real records (Java, node, npm)
	internal/tools/browser.sh

.PHONY: screenshots
screenshots: ## write docs/images by the same tools
	internal/tools/browser.sh screenshots

.PHONY: vet
vet: ## go vet, and samekey vet on all packages
	go vet ./...
	@for m in $(MODULES); do (set -x; cd $$m && go vet ./...) || exit; done
	@go build -o $(BIN)/samekey ./cmd/samekey
	$(BIN)/samekey vet ./...
	$(BIN)/samekey vet --lock examples/samekey.lock ./examples/...
	cd examples/shop && $(BIN)/samekey vet --lock samekey.lock ./...

.PHONY: lint
lint: $(LINT) ## golangci-lint, built from source on first use (about 5 minutes)
	$(LINT) run
	@for m in $(MODULES); do (set -x; cd $$m && $(LINT) run) || exit; done

.PHONY: fmt
fmt: $(LINT) ## format
	$(LINT) fmt

$(LINT):
	GOBIN=$(BIN) GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(BIN)/golangci-lint $@

.PHONY: lint-template
lint-template: ## sam validate, cfn-lint and checkov on the templates (python3)
	internal/tools/template-lint.sh --security

.PHONY: smoke-deploy
smoke-deploy: ## deploy both templates to a stand-in for AWS by the README's commands, and call them (python3)
	internal/tools/smoke-deploy.sh

.PHONY: stopwatch
stopwatch: ## play a new user, from an empty folder to a deployed application, and print the times (Java, python3)
	internal/tools/stopwatch.sh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	internal/tools/fuzz.sh $(FUZZTIME)

N             ?= 1000000
N_DYNAMODB    ?= 10000
SEED          ?=

.PHONY: fuzz-tenants
fuzz-tenants: ## random tenants under equal keys: N requests in memory, N_DYNAMODB on DynamoDB Local (minutes; Java; docs/testing.md)
	TENANTTEST_N=$(N) TENANTTEST_DYNAMO_N=$(N_DYNAMODB) TENANTTEST_SEED=$(SEED) go test ./internal/tenanttest \
		-run '^TestTenants(InMemory|OnDynamoDB)$$' -v -count=1 -timeout 4h

.PHONY: timing-tenants
timing-tenants: ## times under another tenant's keys beside those under unknown keys, with their statistics (Java)
	go test ./internal/tenanttest -run '^$$' -bench '^BenchmarkForeignKey$$' -benchtime $(or $(SAMPLES),5000)x -timeout 4h

.PHONY: mutants
mutants: ## break each rule of the protocol once; a test must fail each time (docs/testing.md)
	go run ./internal/tools/mutate

SUPPLY        := $(BIN)/supply
# Programs that people run themselves, besides the functions.
PROGRAMS      := samekey

.PHONY: $(SUPPLY)
$(SUPPLY):
	@cd internal/tools/supply && go build -o $@ .

.PHONY: sbom
sbom: $(SUPPLY) ## bills of materials of every binary in dist/sbom/ARCH, CycloneDX JSON (ARCH=arm64 or x86_64)
	@$(MAKE) --no-print-directory -s build ARCH=$(ARCH) >/dev/null
	@for p in $(PROGRAMS); do $(BUILD) -o dist/$$p/$$p ./cmd/$$p || exit; done
	@$(SUPPLY) sbom -o dist/sbom/$(ARCH) dist/*/bootstrap $(foreach p,$(PROGRAMS),dist/$(p)/$(p))

.PHONY: reproducible
reproducible: ## build every function twice, elsewhere and with other caches, and compare the bytes
	@internal/tools/reproducible.sh $(DIST)

.PHONY: api
api: $(SUPPLY) ## changes of the exported API since the last tag; APIFLAGS=-strict refuses incompatible ones before 1.0, too
	@$(SUPPLY) api $(APIFLAGS) .

.PHONY: vuln
vuln: ## known vulnerabilities, by govulncheck; needs its database on the network, and fails without it
	@internal/tools/vuln.sh $(MODULES)

.PHONY: bench-waiting
bench-waiting: ## the list of what waits for people: 100,000 among a million (WAITING=n for another number)
	go test ./dynamo/stream -run '^$$' -bench '^BenchmarkWaiting$$' -benchtime $(or $(WAITING),100000)x -timeout 4h -v

.PHONY: bench
bench: ## ns and allocations of the hot paths
	go test -run='^$$' -bench=. ./dynamo ./seal ./lambda ./internal/signaltest

.PHONY: deploy
deploy: build ## sam deploy, with a fresh bootstrap
	sam deploy

.PHONY: clean
clean: ## what was built here; caches outside of the checkout stay
	rm -rf dist .bin .venv .aws-sam
