# make run    build bridgecheck and test the reference bridge
# make test   all tests
# make fuzz     every fuzz target, FUZZTIME each
# make stability  50 runs in a row, which must give the same verdicts; LOAD=1: all cores taken by others, but for the first
# make variants   every correct variant in a run of its own, which must blame it for nothing; LOAD=1: all cores taken by others
# make clients  real MCP clients, and Prism with the OpenAPI document, against the bridge
# make packaging  the images, the GitHub Action and the module for Testcontainers
# make platforms  build for every system and processor of a release, and vet for every other system (make systems: that alone)
# make wine       the Windows binary under wine
# make packages  an archive, the npm packages and the Composer package for this machine's platform
# make dist       archives for every platform, with checksums and SBOMs
# make dist-check the archives built twice, at two places, have the same bytes; FULL=1: the second without a build cache
# make install-check  what was built gives a verdict where there is no Go; FULL=1: of all clauses
# make bench-run  how long runs take with one worker, and with those that help
# make weights    measure how long each check takes, for the order of workers and the balance of shards
# make notices    write THIRD_PARTY_NOTICES
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FORMATTED   := bridge cmd fixtures internal mockdrupal reports suites test packaging

.PHONY: run weights bench-run build test race selftest stability variants bench soak siege replicas fuzz lint platforms systems wine version dist dist-check packages install-check notices clients packaging ci clean

run: build
	./bin/bridgecheck run

build:
	go build -trimpath -buildvcs=auto -o bin/bridgecheck ./cmd/bridgecheck

# The packages that take longest come first, so that none of them is left to run alone at the end.
test:
	go test -timeout 20m ./test/bridges ./cmd/... ./suites/... ./test/... ./...

# The tests whose speed the race detector does not ruin; reports/format, which shares nothing, is left out for its browsers.
# It needs cgo.
race:
	CGO_ENABLED=1 go test -race ./fixtures/... ./mockdrupal/... ./bridge/... ./reports ./reports/baseline ./reports/serve ./suites/contract ./suites/exact

# Every broken bridge must fail, every correct one must pass. FULL=1: every mutant by every clause.
selftest: build
	./bin/bridgecheck selftest $(if $(FULL),--full)

# Runs in a row must give the same verdicts. With LOAD=1 as many busy processes as there are cores run beside all but the
# first; they end with the shell that started them, however it ends.
RUNS := 50
LOAD := 0
stability: build
	@dir=$$(mktemp -d); hogs=; same=0; \
	trap 'kill $$hogs 2>/dev/null; rm -rf "$$dir"' EXIT; trap 'exit 130' HUP INT TERM; \
	for i in $$(seq $(RUNS)); do \
		if test $(LOAD) = 1 && test $$i = 2; then \
			for core in $$(seq $$(getconf _NPROCESSORS_ONLN)); do sh -c 'while kill -0 $$PPID; do :; done' 2>/dev/null & hogs="$$hogs $$!"; done; \
		fi; \
		bin/bridgecheck run --quiet --report-dir "$$dir/$$i" >/dev/null 2>&1; \
		if test -e "$$dir/$$i/report.json" && bin/bridgecheck report diff "$$dir/1" "$$dir/$$i" >"$$dir/diff" 2>&1 && grep -q '^no difference' "$$dir/diff"; \
		then same=$$((same + 1)); else echo "run $$i differs from the first:"; cat "$$dir/diff"; fi; \
	done; \
	echo "$$same of $(RUNS)"; test $$same = $(RUNS)

# Nothing is tested a second time: a false alarm that goes away is one, too. VARIANTS names some instead of all. Runs wait
# more than they compute, so that several share a core.
VARIANTS = $(shell sed -n '/^.. Correct variants/,$$ s/^- \([^:]*\):.*/\1/p' docs/kill-matrix.md)
BESIDE  := 8
variants: build
	@hogs=; trap 'kill $$hogs 2>/dev/null' EXIT; trap 'exit 130' HUP INT TERM; \
	if test $(LOAD) = 1; then \
		for core in $$(seq $$(getconf _NPROCESSORS_ONLN)); do sh -c 'while kill -0 $$PPID; do :; done' 2>/dev/null & hogs="$$hogs $$!"; done; \
	fi; \
	printf '%s\n' $(VARIANTS) | xargs -P $(BESIDE) -I NAME sh -c 'said=$$(bin/bridgecheck selftest --mutant NAME 2>&1) && echo "NAME: blamed for nothing" || { echo "NAME: BLAMED"; echo "$$said"; exit 1; }'

# Each line: one worker, then as many as help; how many times as fast, the checks that passed in a second, and what they
# compared apart: a tool, a caller or a row of a table with a finding of its own. In process a clause is checked for each kind
# of bridge that it applies to. The last lines are the official MCP suite's, whose checks compare one response or two.
bench-run: build test/clients/node_modules
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
	go test -count=1 -v -run TestOfficialConformance ./test/clients | grep -o 'official MCP suite.*'

# Two runs in one worker say how long each check takes.
weights: build
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	bin/bridgecheck run --quiet --contract draft --jobs 1 --report-dir "$$dir/in-process" && \
	bin/bridgecheck run --quiet --contract draft --jobs 1 --report-dir "$$dir/exec" --exec 'bin/bridgecheck bridge' && \
	go build -o "$$dir/slowsite" ./internal/tools/slowsite && \
	bin/bridgecheck run --quiet --contract draft --jobs 8 --report-dir "$$dir/slow" --exec "$$dir/slowsite -delay 300ms bin/bridgecheck bridge" && \
	go run ./suites/workers/weigh "$$dir/in-process" "$$dir/exec" "$$dir/slow"

# The reference bridge beside hand-written servers, compared with its targets; then every other benchmark.
bench:
	go test -count=1 -run '^TestSpeed$$' -v ./bridge -benchtime 20x -speed
	go test -run '^$$' -bench . -benchmem ./...

# A million calls to the reference bridge while its site fails in every way; all tests make a short one.
SOAK_CALLS := 1000000
soak:
	BRIDGE_SOAK_CALLS=$(SOAK_CALLS) go test -count=1 -timeout 2h -run '^TestSoak$$' -v ./bridge

# Hostile and honest callers side by side at a bridge of its own: 10 minutes, in CI 20 s.
SIEGE_TIME := 10m
siege:
	SIEGE_TIME=$(SIEGE_TIME) go test -count=1 -timeout 1h -run '^TestSiege$$' -v ./test/attacks

# Three replicas of the bridge with a store: what they cost, and then killed, paused and cut from it for REPLICAS_TIME. All
# tests make a short one. Needs redis-server.
REPLICAS_TIME := 10m
replicas:
	for test in TestSpeed TestSoak; do REPLICAS_TIME=$(REPLICAS_TIME) go test -count=1 -timeout 3h -run "^$$test$$" -v ./test/replicas || exit 1; done

# Every fuzz target for so long, FUZZJOBS side by side, else as many as there are processors; prints the inputs of each and of all.
FUZZTIME := 1m
FUZZJOBS :=
fuzz:
	go run ./internal/tools/fuzz -time $(FUZZTIME) $(if $(FUZZJOBS),-jobs $(FUZZJOBS))

lint:
	@unformatted="$$(gofmt -l $(FORMATTED))"; test -z "$$unformatted" || { echo "not formatted by gofmt: $$unformatted"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

ALL_PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# Built as `make dist` builds, so that the cache of builds serves both.
platforms: systems
	@for platform in $(or $(PLATFORMS),$(ALL_PLATFORMS)); do \
		echo "build $$platform"; \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go build -trimpath -o /dev/null ./cmd/bridgecheck || exit 1; \
	done

# Vet reads all files of a system, those of tests and tools as well; no file is for a processor (test/repo), so one processor
# of each system is enough. Those of this system lint reads.
SYSTEMS := $(filter-out $(shell go env GOHOSTOS),$(sort $(foreach platform,$(ALL_PLATFORMS),$(firstword $(subst /, ,$(platform))))))
systems:
	@for system in $(SYSTEMS); do \
		echo "vet $$system"; \
		GOOS=$$system GOARCH=amd64 CGO_ENABLED=0 go vet -trimpath ./... || exit 1; \
	done

wine:
	.ci/wine

# The version is the tag, or names the commit. Where there is no git, give all three.
VERSION := $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty --exclude '*' 2>/dev/null))
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null)
EPOCH   := $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
RELEASE  = go run -trimpath ./packaging/release $(1) -version "$(VERSION)" -commit "$(COMMIT)" -epoch $(EPOCH) -platforms "$(or $(PLATFORMS),$(2))"

version:
	@echo "$(VERSION)"

dist:
	$(call RELEASE,archives,$(ALL_PLATFORMS))

packages:
	@echo "compiling: some minutes the first time"
	@$(call RELEASE,packages,$(shell go env GOOS)/$(shell go env GOARCH))

# The copy holds what is committed or added, so that a file that is neither is seen.
dist-check: dist
	@copy=$$(mktemp -d); trap 'chmod -R u+w "$$copy"; rm -rf "$$copy"' EXIT; \
	git ls-files -z | tar --null -cT - | tar -xC "$$copy" && \
	$(if $(FULL),GOCACHE="$$copy/cache") $(MAKE) --no-print-directory -C "$$copy" dist VERSION="$(VERSION)" COMMIT="$(COMMIT)" EPOCH=$(EPOCH) PLATFORMS="$(PLATFORMS)" >/dev/null && \
	diff -r dist "$$copy/dist" && echo "the same bytes twice: $$(wc -l <dist/checksums.txt) files"

install-check: packages
	FULL=$(FULL) .ci/install

notices:
	go run ./internal/tools/notices >THIRD_PARTY_NOTICES.new && mv THIRD_PARTY_NOTICES.new THIRD_PARTY_NOTICES

# The MCP clients that people have, at the versions in test/clients/package.json. Needs npm.
clients: test/clients/node_modules
	go test ./test/clients
test/clients/node_modules: test/clients/package-lock.json
	cd test/clients && npm ci --no-audit --no-fund --silent && touch node_modules

# What ships it: the Dockerfile by BuildKit's parser, the GitHub Action by actionlint and by running its script, the images
# by buildah, the module for Testcontainers. BASE=DIR, the files of a Debian: the image with Node and PHP where there is no
# registry. BRIDGECHECK_IMAGE=NAME: start the mock of that image by Docker.
packaging:
	cd test/release && go vet ./... && go test -count=1 ./...
	BASE="$(BASE)" .ci/image
	cd packaging/testcontainers && go vet ./... && go test -count=1 -v ./...

ci:
	.ci/run

clean:
	rm -rf bin dist bridgecheck-report
