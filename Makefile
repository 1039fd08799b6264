# `make` lists the targets: each has its text after ##.
.DEFAULT_GOAL := help
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FORMATTED   := bridge cmd fixtures internal mockdrupal packaging reports suites test

# One set of flags for everything that make, CI and the tests build, so that no package is compiled twice: without cgo and
# with -trimpath the cache of builds serves releases and copies of the repository, too; make lint runs all of vet, so that
# go test need not run a part of it again; only a debugger reads what -w leaves out, and it takes long to link.
# docs/contributing.md has the same for a shell.
FLAGS := -trimpath -vet=off -ldflags=-w
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(FLAGS),$(shell go env GOFLAGS)) $(FLAGS)

# Tests wait more than they compute, so that twice as many packages run as there are processors.
GO_TEST = go test -timeout 20m -p $$((2 * $$(getconf _NPROCESSORS_ONLN)))

.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "make %-14s %s\n", $$1, $$2 }'

run: build ## build bridgecheck and test the reference bridge over the mock Drupal
	./bin/bridgecheck run

build: ## bin/bridgecheck
	@test -e bin/bridgecheck || echo "compiling bridgecheck: minutes the first time, then seconds"
	go build -buildvcs=auto -o bin/bridgecheck ./cmd/bridgecheck
	@echo "bin/bridgecheck is built; to call it as bridgecheck in this shell: export PATH=\"$(CURDIR)/bin:\$$PATH\""

# Three sizes of tests, of which each is a part of the next. -short leaves out what takes long and what starts processes, but
# for the command line, whose tests start it, and for test/attacks and test/replicas, which -short leaves out as a whole. The
# flags are the same in check and test, so that test takes over the results of check.
check: lint ## before each commit: gofmt, vet, staticcheck, and the tests that start no process
	$(GO_TEST) -short $$(go list ./... | grep -v /cmd/)

test: internal/chrome/node_modules ## the tests, but for those that take minutes; the packages that take longest come first
	$(GO_TEST) -short ./cmd/... ./suites/... ./...
	@echo "left to make rest: what -short skips in" $(REST)

# Every package that leaves something out with -short; test/release is a module of its own, which make packaging tests.
REST = $(filter-out test/release/,$(sort $(dir $(shell grep -rl 'testing.Short()' --include='*_test.go' bridge cmd fixtures internal mockdrupal packaging reports suites test))))
rest: test/clients/node_modules ## the tests that take minutes: walk-throughs, a moved module, bridges in other languages, all mutants
	$(GO_TEST) $(addprefix ./,$(REST))

# Nearly all memory is used once: to collect it less often saves a third.
power: ## every change of a value at every place is found by the clause that it breaks; POWER=20: so many of each place
	GOGC=400 POWER=$(or $(POWER),all) go test -count=1 -timeout 3h -run '^TestEveryChangeIsFound$$' ./test/power

CONDITIONS := 100
conditions: ## faults that depend on a condition are found, a run for each: CONDITIONS=100 of all, chosen by SEED=1
	GOGC=400 CONDITIONS=$(CONDITIONS) SEED=$(SEED) go test -count=1 -timeout 6h -run '^TestFaultsUnderConditionsAreFound$$' ./test/power

lint: ## gofmt, vet and staticcheck
	@unformatted="$$(gofmt -l $(FORMATTED))"; test -z "$$unformatted" || { echo "not formatted by gofmt: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

# The tests whose speed the race detector does not ruin; reports/format, which shares nothing, is left out for its browsers.
# It needs cgo.
race: ## the tests of what shares memory, with the race detector
	CGO_ENABLED=1 go test -race ./fixtures/... ./mockdrupal/... ./bridge/... ./reports ./reports/baseline ./reports/serve ./suites/contract ./internal/exact

# Every broken bridge must fail, every correct one must pass.
selftest: build ## every mutant fails, every correct variant passes; FULL=1: every mutant by every clause
	./bin/bridgecheck selftest $(if $(FULL),--full)

# Runs in a row must give the same verdicts. With LOAD=1 as many busy processes as there are cores run beside all but the
# first; they end with the shell that started them, however it ends.
RUNS := 50
LOAD := 0
TAKE_CORES = if test $(LOAD) = 1; then for core in $$(seq $$(getconf _NPROCESSORS_ONLN)); do sh -c 'while kill -0 $$PPID; do :; done' 2>/dev/null & hogs="$$hogs $$!"; done; fi
stability: build ## RUNS=50 runs in a row give the same verdicts; LOAD=1: beside busy processors
	@dir=$$(mktemp -d); hogs=; same=0; \
	trap 'kill $$hogs 2>/dev/null; rm -rf "$$dir"' EXIT; trap 'exit 130' HUP INT TERM; \
	for i in $$(seq $(RUNS)); do \
		if test $$i = 2; then $(TAKE_CORES); fi; \
		bin/bridgecheck run --quiet --report-dir "$$dir/$$i" >/dev/null 2>&1; \
		if test -e "$$dir/$$i/report.json" && bin/bridgecheck report diff "$$dir/1" "$$dir/$$i" >"$$dir/diff" 2>&1 && grep -q '^no difference' "$$dir/diff"; \
		then same=$$((same + 1)); else echo "run $$i differs from the first:"; cat "$$dir/diff"; fi; \
	done; \
	echo "$$same of $(RUNS)"; test $$same = $(RUNS)

# Nothing is tested a second time: a false alarm that goes away is one, too. VARIANTS names some instead of all. Runs wait
# more than they compute, so that several share a core.
VARIANTS = $(shell sed -n '/^.. Correct variants/,$$ s/^- \([^:]*\):.*/\1/p' docs/kill-matrix.md)
BESIDE  := 8
variants: build ## every correct variant in a run of its own is blamed for nothing; LOAD=1: beside busy processors
	@hogs=; trap 'kill $$hogs 2>/dev/null' EXIT; trap 'exit 130' HUP INT TERM; $(TAKE_CORES); \
	printf '%s\n' $(VARIANTS) | xargs -P $(BESIDE) -I NAME sh -c 'said=$$(bin/bridgecheck selftest --mutant NAME 2>&1) && echo "NAME: blamed for nothing" || { echo "NAME: BLAMED"; echo "$$said"; exit 1; }'

# The verdicts on programs that others wrote, and on small inputs from public reports: what fails is what the tests' tables name.
zoo: test/clients/node_modules ## servers, gateways and client libraries of others have the verdicts of their ledgers; LOAD=1: beside busy processors
	@hogs=; trap 'kill $$hogs 2>/dev/null' EXIT; trap 'exit 130' HUP INT TERM; $(TAKE_CORES); \
	go test -count=1 -v -timeout 40m -run 'TestCases|TestServersOfOthers|TestGatewaysBefore|TestLibraries' ./test/clients

# Each line: one worker, then as many as help; how many times as fast, the checks that passed in a second, and what they
# compared apart: a tool, a caller or a row of a table with a finding of its own. In process a clause is checked for each kind
# of bridge that it applies to. Then the official MCP suite's, whose checks compare one response or two. The last table is what
# runs cost, beside the figures of the last release in internal/tools/price/release.json, which WRITE=1 replaces; with AGAINST=FILE
# that other bridgecheck runs in turn, for ratios.
bench-run: build test/clients/node_modules ## how long runs take with one worker, and with several; then bench-price
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	took() { began=$$(date +%s%N); bin/bridgecheck run --quiet --shard 1/1 --run-id bench --report-dir "$$dir" "$$@" >"$$dir/said" || { cat "$$dir/said"; exit 1; }; echo $$((($$(date +%s%N) - began) / 1000000)); }; \
	compare() { name=$$1; shift; one=$$(took --jobs 1 "$$@") && all=$$(took "$$@") || exit 1; \
		checks=$$(grep -o '"verdict":"pass"' "$$dir/shard.json" | wc -l); compared=$$(grep -o '{"Tool":' "$$dir/shard.json" | wc -l); \
		awk -v name="$$name" -v one=$$one -v all=$$all -v checks=$$checks -v compared=$$compared \
		'BEGIN { printf "%-22s %6.1f s %6.1f s   %.1f times as fast, %.0f checks and %.0f comparisons a second\n", name, one/1000, all/1000, one/all, checks*1000/all, compared*1000/all }'; }; \
	compare 'in process' && compare 'exec, reference bridge' --exec 'bin/bridgecheck bridge' && \
	bin/bridgecheck init node "$$dir/node" >/dev/null && compare 'exec, Node bridge' --config "$$dir/node/bridgecheck.yaml" --exec "node $$dir/node/bridge.js" && \
	go build -o "$$dir/slowsite" ./internal/tools/slowsite && \
	slow=$$(took --exec "$$dir/slowsite -delay 300ms bin/bridgecheck bridge") && echo "exec, site of 300 ms: $$slow ms" && \
	go test -count=1 -v -run TestOfficialConformance ./test/clients | grep -o 'official MCP suite.*' && \
	$(MAKE) --no-print-directory bench-price

# Faults that nobody here chose: Stryker's in the Node starter, gremlins' in the Go starter. What survives is equivalent or silent
# by internal/tools/mutation/reviewed.yaml, or a hole. It goes on where it was interrupted; bin/mutation-*.jsonl has the results.
SAMPLE := 200
SEED := 1
mutation: build internal/tools/mutation/node_modules ## how many machine-made faults in the starters are caught: SAMPLE=200 SEED=1; WRITE=1: into docs/trust.md
	go run ./internal/tools/mutation -starter node -sample $(SAMPLE) -seed $(SEED) $(if $(WRITE),-write)
	go run ./internal/tools/mutation -starter go -sample $(SAMPLE) -seed $(SEED) $(if $(WRITE),-write)

bench-price: build ## what runs cost, beside the last release; AGAINST=FILE: beside another bridgecheck
	go run ./internal/tools/price $(if $(AGAINST),-against "$(AGAINST)") $(if $(WRITE),-write)

# As a newcomer has it: a fresh clone and an empty cache of builds; the modules are there. With AGAINST=COMMIT that one's turn
# comes next, for the ratio.
bench-cold: ## what the first make run takes; AGAINST=COMMIT: beside another commit
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	took() { git clone -q . "$$dir/$$1" && git -C "$$dir/$$1" checkout -q --detach "$$2" && \
		GOCACHE="$$dir/cache-$$1" bash -c 'TIMEFORMAT="%R %U %S"; time make -C "$$0" run >"$$0.said" 2>&1' "$$dir/$$1" 2>"$$dir/$$1.took" || { cat "$$dir/$$1.said"; exit 1; }; \
		awk -v name="$$2" '{ printf "%-12s %6.1f s, %.1f s of processor time\n", name, $$1, $$2 + $$3 }' "$$dir/$$1.took"; }; \
	took now HEAD && if test -n "$(AGAINST)"; then took then "$(AGAINST)" && \
		cat "$$dir/now.took" "$$dir/then.took" | awk 'NR == 1 { w = $$1; c = $$2 + $$3 } END { printf "ratio        wall %.2f, processor %.2f\n", w / $$1, c / ($$2 + $$3) }'; fi

# Two runs in one worker say how long each check takes.
weights: build ## measure how long each check takes: the order of workers, the balance of shards
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	bin/bridgecheck run --quiet --contract draft --jobs 1 --report-dir "$$dir/in-process" && \
	bin/bridgecheck run --quiet --contract draft --jobs 1 --report-dir "$$dir/exec" --exec 'bin/bridgecheck bridge' && \
	go build -o "$$dir/slowsite" ./internal/tools/slowsite && \
	bin/bridgecheck run --quiet --contract draft --jobs 8 --report-dir "$$dir/slow" --exec "$$dir/slowsite -delay 300ms bin/bridgecheck bridge" && \
	go run ./internal/workers/weigh "$$dir/in-process" "$$dir/exec" "$$dir/slow"

weigh-dependencies: build ## write docs/dependencies.md: what each module adds to the program
	go run ./internal/tools/weigh bin/bridgecheck >docs/dependencies.md.new && mv docs/dependencies.md.new docs/dependencies.md

# The reference bridge beside hand-written servers, compared with its targets.
bench: ## the speed of the reference bridge beside hand-written servers
	go test -count=1 -run '^TestSpeed$$' -v ./bridge -benchtime 20x -speed

# A million calls to the reference bridge while its site fails in every way; all tests make a short one.
SOAK_CALLS := 1000000
soak: ## a million calls while the site fails in every way
	BRIDGE_SOAK_CALLS=$(SOAK_CALLS) go test -count=1 -timeout 2h -run '^TestSoak$$' -v ./bridge

# Hostile and honest callers side by side at a bridge of its own: 10 minutes, in CI 20 s.
SIEGE_TIME := 10m
siege: ## attackers and honest callers at one bridge, for SIEGE_TIME
	SIEGE_TIME=$(SIEGE_TIME) go test -count=1 -timeout 1h -run '^TestSiege' -v ./test/attacks

# Three replicas of the bridge with a store: what they cost, and then killed, paused and cut from it for REPLICAS_TIME. All
# tests make a short one. Needs redis-server.
REPLICAS_TIME := 10m
replicas: ## three replicas that are killed, paused and cut off, for REPLICAS_TIME; needs redis-server
	for test in TestSpeed TestSoak; do REPLICAS_TIME=$(REPLICAS_TIME) go test -count=1 -timeout 3h -run "^$$test$$" -v ./test/replicas || exit 1; done

# FUZZTIME for each target, FUZZJOBS side by side.
FUZZTIME := 1m
FUZZJOBS := 2
fuzz: ## every fuzz target, FUZZTIME each
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9]+' bridge cmd fixtures internal mockdrupal reports suites | \
		sed -E 's|^(.*)/[^/]+:func (.*)|./\1 ^\2$$|' | \
		xargs -P $(FUZZJOBS) -L 1 sh -c 'echo "$$0 $$1"; go test "$$0" -run "^$$" -fuzz "$$1" -fuzztime $(FUZZTIME) -parallel 1'

# PLATFORMS, on the command line or in the environment, names others: PLATFORMS="linux/amd64 windows/arm64".
ALL_PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

platforms: systems ## build for every system and processor of a release, and vet for every other system
	@for platform in $(or $(PLATFORMS),$(ALL_PLATFORMS)); do \
		echo "build $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -o /dev/null ./cmd/bridgecheck || exit 1; \
	done

# Vet reads all files of a system, those of tests and tools as well; no file is for a processor (test/repo), so one processor
# of each system is enough. Those of this system lint reads.
SYSTEMS = $(filter-out $(shell go env GOHOSTOS),$(sort $(foreach platform,$(ALL_PLATFORMS),$(firstword $(subst /, ,$(platform))))))
systems: ## vet for every other system
	@for system in $(SYSTEMS); do \
		echo "vet $$system"; \
		GOOS=$$system GOARCH=amd64 go vet ./... || exit 1; \
	done

wine: ## the Windows binary under wine
	.ci/wine

# The version is the tag, or names the commit. Where there is no git, give all three.
VERSION = $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty --exclude '*' 2>/dev/null))
COMMIT  = $(shell git rev-parse HEAD 2>/dev/null)
EPOCH   = $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
RELEASE = go run ./packaging/release $(1) -version "$(VERSION)" -commit "$(COMMIT)" -epoch $(EPOCH) -platforms "$(or $(PLATFORMS),$(2))"

version: ## the version that a build of this commit has
	@echo "$(VERSION)"

packages: ## dist: archive, SBOM, npm and Composer packages for this machine's platform, or for PLATFORMS
	@echo "compiling: two to three minutes the first time"
	@$(call RELEASE,packages,$(shell go env GOOS)/$(shell go env GOARCH))

dist: ## dist: archives and SBOMs for every platform, or for PLATFORMS
	@$(call RELEASE,archives,$(ALL_PLATFORMS))

# The copy holds what is committed or added, so that a file that is neither is seen.
dist-check: dist ## the archives built twice, at two places, have the same bytes; FULL=1: the second without a build cache
	@copy=$$(mktemp -d); trap 'chmod -R u+w "$$copy"; rm -rf "$$copy"' EXIT; \
	git ls-files -z | tar --null -cT - | tar -xC "$$copy" && \
	$(if $(FULL),GOCACHE="$$copy/cache") $(MAKE) --no-print-directory -C "$$copy" dist VERSION="$(VERSION)" COMMIT="$(COMMIT)" EPOCH=$(EPOCH) PLATFORMS="$(PLATFORMS)" >/dev/null && \
	diff -r dist "$$copy/dist" && echo "the same bytes twice: $$(wc -l <dist/checksums.txt) files"

install-check: packages ## what make packages built gives a verdict where there is no Go; FULL=1: of all clauses
	FULL=$(FULL) .ci/install

notices: ## write THIRD_PARTY_NOTICES
	go run ./internal/tools/notices >THIRD_PARTY_NOTICES.new && mv THIRD_PARTY_NOTICES.new THIRD_PARTY_NOTICES

# The MCP clients that people have, at the versions in test/clients/package.json. Their tests skip loudly without them.
clients: test/clients/node_modules ## real MCP clients, and Prism with the OpenAPI document, against the bridge; needs npm
	go test ./test/clients

php: mockdrupal/drupalmodule/testdata/php/node_modules ## the fixture module of a real Drupal on Debian's PHP and, by npm, on PHP 8.3 to 8.5
	go test ./mockdrupal/drupalmodule

%/node_modules: %/package-lock.json
	@cd $* && npm ci --no-audit --no-fund --silent && touch node_modules || echo "SKIPPED: npm cannot install the packages of $*, so that its tests are left out" >&2

# The Dockerfile by BuildKit's parser, the GitHub Action by actionlint and by running its script, the images by buildah, the
# module for Testcontainers. BASE=DIR, the files of a Debian: the image with Node and PHP where there is no registry.
# BRIDGECHECK_IMAGE=NAME: start the mock of that image by Docker.
packaging: ## the images, the GitHub Action and the module for Testcontainers
	cd test/release && go vet ./... && go test -count=1 ./...
	BASE="$(BASE)" .ci/image
	cd packaging/testcontainers && go vet ./... && go test -count=1 -v ./...

ci: ## what a change has to pass
	.ci/run

nightly: ## what has to pass before a release, and takes an hour
	.ci/nightly

clean: ## remove what builds and runs leave behind
	rm -rf bin dist bridgecheck-report
