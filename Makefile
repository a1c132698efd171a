# make           build, vet, lint and test
# make demo      a story with its real results, about a minute
# make test      needs Go only; uses DynamoDB Local if it is available

ARCH          ?= arm64
TESTFLAGS     ?=
# The tests mostly wait for servers: on few cores, more of them at once. GOGC is for less
# work of the garbage collector, also the compiler's. make vet vets the tests too.
empty         :=
space         := $(empty) $(empty)
ATONCE        := $(shell [ "$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -ge 4 ] || echo -p=3 -parallel=4)
FUZZTIME      ?= 5s
BIN           := $(CURDIR)/.bin
LINT_VERSION  := v2.15.0
LINT          := $(BIN)/golangci-lint-$(LINT_VERSION)
GOARCH_arm64  := arm64
GOARCH_x86_64 := amd64
HOSTARCH      := $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)
LOCALFLAGS    ?=
# The modules in this repository besides its own.
MODULES       := cmd/samekey internal/local proof examples/shop otel kms internal/tools/supply
# Static, since the build host's libc may be newer than Lambda's; reproducible; and small: -s takes 30 % off,
# lambda.norpc 20 %, nethttpomithttp2 0.4 MB (all services that a function calls speak HTTP/1.1).
BUILDTAGS     ?= lambda.norpc,nethttpomithttp2
BUILD         := CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH_$(ARCH)) go build -trimpath -buildvcs=false -ldflags=-s -tags=$(BUILDTAGS)

.PHONY: all
all: build vet lint test

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

# The functions of template.yaml: cmd/NAME of examples/rides.
FUNCTIONS     := rides authorizer receipts

.PHONY: build
build: build-template ## the bootstraps of the worker and the examples for Lambda in dist/ (ARCH=arm64 or x86_64)
	cd kms && $(BUILD) -o $(CURDIR)/dist/samekey-worker-kms/bootstrap ./cmd/samekey-worker
	@wc -c dist/samekey-worker/bootstrap dist/samekey-worker-kms/bootstrap
	$(BUILD) -o dist/hello/bootstrap ./examples/hello
	@for f in api authorizer webhook; do (set -x; $(BUILD) -o examples/checkout/dist/$$f/bootstrap ./examples/checkout/cmd/$$f) || exit; done

# What template.yaml deploys.
.PHONY: build-template
build-template:
	$(if $(GOARCH_$(ARCH)),,$(error ARCH is "$(ARCH)": use arm64 or x86_64))
	$(BUILD) -o dist/samekey-worker/bootstrap ./cmd/samekey-worker
	@mkdir -p deploy/dist/samekey-worker && cp dist/samekey-worker/bootstrap deploy/dist/samekey-worker/ # beside samekey.yaml
	@for f in $(FUNCTIONS); do (set -x; $(BUILD) -o dist/$$f/bootstrap ./examples/rides/cmd/$$f) || exit; done

.PHONY: demo
demo: ## run Rocket Rides on this machine, and inject failures and SIGKILL (Java)
	@go run ./examples/rides/demo

.PHONY: demo-hello
demo-hello: ## play the story of one key, over HTTP
	go run ./examples/hello/demo

# samekey takes the place of the shell, and minds make: a signal to either ends everything.
.PHONY: local
local: ## run template.yaml on this machine (docs/use/local.md; more flags in LOCALFLAGS)
	@$(MAKE) --no-print-directory build-template ARCH=$(HOSTARCH) BUILDTAGS=lambda.norpc >&2 # as samekey local builds
	@go build -o dist/world/bootstrap ./examples/rides/cmd/world
	@go build -C cmd/samekey -o $(BIN)/samekey .
	@exec $(BIN)/samekey local --with-parent --parameter Architecture=$(HOSTARCH) --parameter WorldUrl={world} \
		--process world=dist/world/bootstrap --process-url world=http://127.0.0.1:$(or $(LOCAL_WORLD_PORT),3001) \
		$(LOCALFLAGS)

# What repeats rules by force: processes that are killed at many calls, and random programs.
FORCE         := crash mix queues simulation

# What takes the whole way: a start from a cold cache, make local, a night of trouble;
# faults planted in a store, which the schedules find; and the engine's rules once more, on a store that encrypts.
LONG          := TestBrokenStoreIsFound TestEngineSealed TestMakeLocalWithADatabase TestNightOfTrouble TestOnThisMachine TestPeak TestPeakOfTheWorker TestPlantedInTheStack TestStartFromColdCache
LONG_PKGS     := ./dynamo ./dynamo/dynamotest ./examples/rides/stack ./idem
LONG_TESTS    := '^($(subst $(space),|,$(LONG)))$$'

but            = go list ./... | grep -vE '/($(subst $(space),|,$(1)))(/|$$)'
GOTEST        := GOGC=400 go test -vet=off $(ATONCE) -timeout=30m -skip $(LONG_TESTS)

# Tests are compiled as bootstraps are, which tests build as well: so packages that both need are compiled once.
test test-build test-root test-modules test-proof: export CGO_ENABLED := 0
test test-build test-root test-modules test-proof: export GOFLAGS := -trimpath -tags=lambda.norpc

# All is compiled before a test begins: no test waits for a compiler.
.PHONY: test-build
test-build:
	GOGC=400 go list -export -test ./... >/dev/null
	@for m in $(MODULES); do (set -x; cd $$m && GOGC=400 go list -export -test ./... >/dev/null) || exit; done

# Side by side: some tests wait while others compute. Each test has a database of its own in one process.
.PHONY: test
test: test-build ## a test for each rule, in minutes; REQUIRE_DYNAMODB=1 makes a missing DynamoDB Local a failure
	@DYNAMOTEST_SEPARATE=1 go run ./dynamo/dynamotest/ddblocal -optional -- $(MAKE) --no-print-directory -j2 test-root test-modules

.PHONY: test-root
test-root:
	$(GOTEST) $(TESTFLAGS) ./...

# -count=1 in proof: Go's cache of results doesn't see the pages and code of another module that its tests read.
.PHONY: test-proof
test-proof:
	cd proof && $(GOTEST) -count=1 $(TESTFLAGS) $$($(call but,$(FORCE:%=proof/%)))

.PHONY: test-modules
test-modules: test-proof
	@for m in $(filter-out proof,$(MODULES)); do (set -x; cd $$m && $(GOTEST) $(TESTFLAGS) ./...) || exit; done

.PHONY: samples
samples: ## a sample of each proof that repeats rules by force, and what takes the whole way; make prove plays all (minutes; Java)
	GOGC=400 REQUIRE_DYNAMODB=1 go test $(ATONCE) -timeout=20m -run $(LONG_TESTS) $(TESTFLAGS) $(LONG_PKGS)
	cd proof && GOGC=400 REQUIRE_DYNAMODB=1 go test $(ATONCE) -run $(LONG_TESTS) $(TESTFLAGS) ./memory ./signals
	cd proof && GOGC=400 REQUIRE_DYNAMODB=1 go test -count=1 $(ATONCE) $(TESTFLAGS) $(FORCE:%=./%/...)

# The packages whose code does several things at once in a process.
RACE          := ./idem ./idem/client ./idem/quota ./internal/background/stream ./lambda ./internal/background/completer ./internal/background/worker ./seal

.PHONY: race
race: ## the tests of the engine, the worker and the client with the race detector (minutes; -race for all tests is in make prove)
	REQUIRE_DYNAMODB=1 go test -race -vet=off -shuffle=on -timeout=20m -skip $(LONG_TESTS) $(TESTFLAGS) $(RACE)

# Each is a case of prove.sh, a row of docs/inside/proof.md and a job of .github/workflows/nightly.yml.
PROOFS        ?= tests race figures planted sealed fuzz fuzz-tenants load soak deploy pages clients packages

.PHONY: prove
prove: ## every proof by force, with the time of each (a night; Java; PROOFS="figures load" for some; docs/inside/proof.md)
	@proof/prove.sh $(PROOFS)

.PHONY: schedules
schedules: ## every order of the store calls of a few attempts with faults (a minute; docs/inside/proof.md)
	PROVE=all go test ./idem -run '^TestSchedules$$' -count=1 -v

LOAD          ?= 10000

.PHONY: load
load: ## a queue's whole life under load, LOAD messages each; figures are printed (Java; docs/inside/proof.md)
	QUEUETEST_LOAD=$(LOAD) go test -C proof ./queues -run '^TestLoad$$' -v -count=1 -timeout 90m

SIM           ?= 50000

.PHONY: simulate
simulate: ## SIM requests in virtual time, under every fault at once; SEED=… repeats an episode (docs/inside/proof.md)
	GOGC=400 SIM_REQUESTS=$(SIM) SIM_SEED=$(SEED) go test -C proof ./simulation -run '^TestSimulation$$' -v -count=1 -timeout 24h

SEEDS         ?= 10000

.PHONY: mix
mix: ## SEEDS new random programs under random faults, on the real store in virtual time; SEED=… plays one again (docs/inside/proof.md)
	GOGC=400 MIX_SEEDS=$(SEEDS) MIX_SEED=$(SEED) go test -C proof ./mix -run '^TestMix$$' -v -count=1 -timeout 24h

.PHONY: stripe-sdks
stripe-sdks: ## the Stripe presets against Stripe's clients for Go, Python and Node (python3, npm)
	proof/stripe/sdks.sh $(TESTFLAGS)

.PHONY: cdk
cdk: ## an application with the stack, synthesized by AWS's CDK (node, npm)
	proof/stacks/cdk.sh

.PHONY: pictures
pictures: ## render every Mermaid diagram of the pages; a broken one fails (node, npm)
	internal/tools/mermaid.sh

.PHONY: site
site: ## the site of docs/ in dist/site/VERSION, strictly: a link that leads nowhere fails (python3, node; VERSION=main)
	@VERSION=$(or $(VERSION),main) internal/tools/site.sh

.PHONY: site-browser
site-browser: site ## links, search and pictures of the site in headless Chromium
	@VERSION=$(or $(VERSION),main) proof/browser/browser.sh site

.PHONY: tidy
tidy: ## fail where go.mod or go.sum of a module is not tidy
	go mod tidy -diff
	@for m in $(MODULES); do (set -x; cd $$m && go mod tidy -diff) || exit; done

.PHONY: browser
browser: ## the page of samekey ui in headless Chromium, on real records (Java, node, npm)
	proof/browser/browser.sh

.PHONY: screenshots
screenshots: ## write docs/images by the same tools
	proof/browser/browser.sh screenshots

.PHONY: vet
vet: ## go vet, and samekey vet on all packages
	go vet ./...
	@for m in $(MODULES); do (set -x; cd $$m && go vet ./...) || exit; done
	@go build -C cmd/samekey -o $(BIN)/samekey .
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
	internal/tools/template-lint.sh

.PHONY: smoke-deploy
smoke-deploy: ## deploy three templates to a stand-in for AWS by the README's commands, and call them (python3)
	internal/tools/smoke-deploy.sh

.PHONY: prove-local
prove-local: ## proof/prove, with this machine as the stand-in for AWS; its report beside it (Java, minutes)
	cd proof/prove && go run . --local --yes --source ../..

.PHONY: rehearse
rehearse: ## two releases, and what strangers do with them, from a module proxy in a folder; the times are printed (Java, python3)
	proof/rehearsal/rehearse.sh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	proof/fuzz.sh $(FUZZTIME)

N             ?= 1000000
N_DYNAMODB    ?= 10000
SEED          ?=

.PHONY: fuzz-tenants
fuzz-tenants: ## random tenants under equal keys: N requests in memory, N_DYNAMODB on DynamoDB Local (minutes; Java; docs/inside/proof.md)
	TENANTTEST_N=$(N) TENANTTEST_DYNAMO_N=$(N_DYNAMODB) TENANTTEST_SEED=$(SEED) go test -C proof ./tenants \
		-run '^TestTenants(InMemory|OnDynamoDB)$$' -v -count=1 -timeout 4h

.PHONY: model
model: ## every state of the protocol's model, and each of its rules removed (docs/inside/model.md); half a minute
	PROVE=all go test -C proof ./model -run '^(TestModel|TestEachRuleIsNeeded|TestBelts)$$' -count=1 -v

.PHONY: traces
traces: ## random histories of engine, drain, sweep, deploys and look-ups that the model must accept, TRACES of each kind (docs/inside/model.md)
	SPEC_TRACES=$(or $(TRACES),10000) go test -C proof ./model -run '^(TestTraces|TestTracesWithDrainAndSweep|TestTracesOfDeploys|TestTracesOfLookUps)$$' -v -count=1 -timeout 4h

SEALEDFLAGS   ?=

.PHONY: sealed
sealed: ## the acceptance suite with encryption on; no content may be in a table or log (15 minutes; Java; SEALEDFLAGS=-short)
	go run -C proof ./sealed $(SEALEDFLAGS)

PAGE          ?= 1

.PHONY: crash-matrix
crash-matrix: ## real processes meet every fault at every call: N requests (150000); writes proof/crash-matrix.md, not with PAGE= (Java; docs/inside/proof.md)
	CRASH_REQUESTS=$(if $(filter file,$(origin N)),150000,$(N)) CRASH_SEED=$(SEED) CRASH_PAGE=$(PAGE) REQUIRE_DYNAMODB=1 \
		go test -C proof ./crash -run '^TestCrashMatrix$$' -v -count=1 -timeout 24h

.PHONY: soak
soak: ## mixed traffic with kills for SOAK (1h), and MEMORY_KEYS hostile names: no memory grows, nothing is left (Linux, Java; docs/inside/proof.md)
	MEMORY_KEYS=$(or $(MEMORY_KEYS),1000000) go test -C proof ./memory -run '^TestHostileNamesTakeNoMemory$$' -v -count=1 -timeout 4h
	SOAK=$(or $(SOAK),1h) REQUIRE_DYNAMODB=1 go test -C proof ./crash -run '^TestSoak$$' -v -count=1 -timeout 24h

.PHONY: planted
planted: ## which proof finds which planted bug, and after how many seconds (hours; Java; docs/inside/proof.md)
	go run -C proof ./planted

.PHONY: figures
figures: ## run what docs/inside/proof.md has figures of, and write them there (half an hour; Java; ONLY=simulate for some)
	go run -C proof ./figures -only '$(ONLY)'

SUPPLY        := $(BIN)/supply
# Programs that people run themselves, besides the functions.
PROGRAMS      := samekey samekey-keys

.PHONY: $(SUPPLY)
$(SUPPLY):
	@cd internal/tools/supply && go build -o $@ .

.PHONY: sbom
sbom: $(SUPPLY) ## bills of materials of every binary in dist/sbom/ARCH, CycloneDX JSON (ARCH=arm64 or x86_64)
	@$(MAKE) --no-print-directory -s build ARCH=$(ARCH) >/dev/null
	@cd cmd/samekey && $(BUILD) -o $(CURDIR)/dist/samekey/samekey .
	@cd kms && $(BUILD) -o $(CURDIR)/dist/samekey-keys/samekey-keys ./cmd/samekey-keys
	@$(SUPPLY) sbom -o dist/sbom/$(ARCH) dist/*/bootstrap $(foreach p,$(PROGRAMS),dist/$(p)/$(p))

.PHONY: reproducible
reproducible: ## build every function twice, elsewhere and with other caches, and compare the bytes
	@internal/tools/reproducible.sh $(DIST)

.PHONY: api
api: $(SUPPLY) ## changes of the exported API since the last tag; APIFLAGS=-strict refuses incompatible ones before 1.0, too
	@$(SUPPLY) api $(APIFLAGS) .

.PHONY: release
release: ## the commit of a release on main: VERSION=0.1.0 (docs/inside/releasing.md)
	@internal/tools/release.sh prepare "$(VERSION)"

.PHONY: tag
tag: ## the signed tags of a release: VERSION=0.1.0
	@internal/tools/release.sh tag "$(VERSION)"

GORELEASER    := $(BIN)/goreleaser-v2.13.3
PACKAGES      ?= snapshot

# GORELEASER_CURRENT_TAG: a release's commit has a tag for each module, too.
.PHONY: packages
packages: $(GORELEASER) ## archives of the command and the worker, with checksums and bills, in dist/ (PACKAGES=release publishes a tag's)
	$(GORELEASER) check
	GORELEASER_CURRENT_TAG=$(shell git tag --points-at HEAD --list 'v*') $(GORELEASER) release --clean \
		$(if $(filter release,$(PACKAGES)),,--snapshot)

$(GORELEASER):
	GOBIN=$(BIN) GOFLAGS= go install github.com/goreleaser/goreleaser/v2@$(GORELEASER:$(BIN)/goreleaser-%=%)
	mv $(BIN)/goreleaser $@

.PHONY: vuln
vuln: ## known vulnerabilities, by govulncheck; needs its database on the network, and fails without it
	@internal/tools/vuln.sh $(MODULES)

.PHONY: bench
bench: ## count calls, units and bytes of every path anew, and write results.json and its tables in proof/bench/README.md (Java)
	go test -C proof ./bench -run '^Test(PathsAreAsRecorded|Page)$$' -count=1 -update

.PHONY: bench-peers
bench-peers: ## the scenarios that break Powertools for Python and TypeScript, beside Samekey (minutes; Java, python3, node)
	@proof/bench/peers.sh

.PHONY: bench-parts
bench-parts: ## ns and allocations of a request and of the adapters
	go test -run='^$$' -bench=. ./lambda
	go test -C proof -run='^$$' -bench=. ./bench

.PHONY: deploy
deploy: build ## sam deploy, with a fresh bootstrap
	sam deploy

.PHONY: clean
clean: ## what was built here; caches outside of the checkout stay
	rm -rf dist deploy/dist examples/checkout/dist .bin .venv .aws-sam
