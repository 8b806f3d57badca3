# Everything that is done with this repository, for people and for CI.
# `make` alone says what there is.

GO      ?= go
BIN     ?= bin
# Where the C library goes: beside BIN, so that bin/impicc finds it.
LIB     ?= lib
# Where make install puts everything, behind DESTDIR if that is set.
PREFIX  ?= /usr/local
DESTDIR ?=
# 1: bin/ and lib/ are taken as they are by install and package, which build them otherwise.
BUILT   ?=
# The SDK is a module of its own, which ./... leaves out.
SDK     := github.com/openimpi/impi/plugins/sdk/...
ALL     := ./... $(SDK)
PKGS    ?= $(ALL)
# A file of the tests that may be skipped: the others fail if they are. Empty: all may be.
STRICT  ?=
# How often a test that failed runs again: 0 never.
RERUN   ?= 1
# 1: tests of which the race detector sees something run with it. RUN chooses tests, a regular expression.
RACED   ?=
RUN     ?=
# What the names of files in out/ begin with.
PART    ?=
# What make soak repeats: 1 what CI has time for, long everything.
SOAK    ?= 1
# How long all fuzz targets run together, and how often each Go benchmark runs.
# FUZZTIME gives each target that time instead; FUZZ chooses some of them.
FUZZBUDGET ?= 10m
FUZZTIME   ?= 0
FUZZ       ?=
COUNT      ?= 6
# The seeds that are simulated, the last one not included.
SEEDS      ?= 0:2000
# Those of jobs that meet.
WORLDS     ?= 0:1000
# Those of jobs that go on without lost procs.
SURVIVE    ?= 0:1000
# The questions that performance asks, a regular expression of their names; empty: all.
ONLY       ?=
# The flags of internal/wan/run.
WAN        ?=
# What campaign searches, of seeds,worlds,calls,fuzz,kills, and for how long.
WHAT       ?= all
BUDGET     ?= 10m
# The faults that sim-mutants and conform-mutants try, a regular expression; empty: all.
MUTANTS    ?=

# The race detector needs cgo, and cgo needs a compiler.
# What computes and has no memory of ours written goes without it: Go's elliptic curves, as go-plugin's
# keys, of which each start of a plugin made two, took half the time of internal/node; regular
# expressions and templates, which third packages compile as each process starts, a fifth.
UNRACED := crypto/internal/fips140/... regexp/... text/template/... html/template
RACE := $(shell test "$$($(GO) env CGO_ENABLED)" = 1 && command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race $(UNRACED:%=-gcflags=%=-race=false))
# The packages whose tests take longest begin first, so that the others fill the time.
LONGEST := ./internal/node ./cmd/impi-node ./internal/peers ./plugins/host ./internal/vendors ./internal/conformance ./internal/ctest ./internal/matrix ./core/mpi ./core/resume ./examples
# The race detector would have every process, of which tests start thousands, sleep a
# second before it exits.
export GORACE ?= atexit_sleep_ms=0
GOTESTSUM := $(GO) tool -modfile=tools.mod gotestsum
LINT := $(GO) tool -modfile=tools.mod golangci-lint

.DEFAULT_GOAL := help
.PHONY: help build library install package sbom demo test soak race lint bench fuzz sim sim-mutants conform-mutants conform peers matrix performance wan campaign clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Neither the folder of the source nor that of a user is in what is built, so that two builds of a commit
# by the same compilers are the same. The hash of the flags, which name a file, is left out of the library.
SAME := -trimpath

build: library ## build all programs and examples into bin/, and the C library into lib/
	@mkdir -p $(BIN)
	$(GO) build $(SAME) -o $(BIN)/ $$($(GO) list ./cmd/... ./examples/... | grep -v '/cmd/libmpi$$')
	@ln -sf impicc $(BIN)/mpicc_abi; ln -sf impicxx $(BIN)/mpicxx_abi

# The ABI has version 1. Programs linked with MPICH 5.0.x ask for libmpi_abi.so.0.
library: ## build lib/libmpi_abi.so.1 for C and Fortran programs, which takes a C compiler
	@if ! command -v "$$($(GO) env CC)" >/dev/null 2>&1; then \
		echo "there is no C compiler: $(LIB)/libmpi_abi.so.1 is not built, C programs cannot be linked"; \
	elif [ "$$($(GO) list ./cmd/libmpi 2>/dev/null)" = "" ]; then \
		echo "cgo does not work here, or this is no 64-bit Linux: $(LIB)/libmpi_abi.so.1 is not built"; \
	else \
		set -e; mkdir -p $(LIB)/pkgconfig; \
		$(GO) build $(SAME) -buildmode=c-shared -o $(LIB)/libmpi_abi.so.1 -ldflags "-buildid= -extldflags '-Wl,-soname,libmpi_abi.so.1 -Wl,--version-script=$(CURDIR)/cmd/libmpi/exports.map'" ./cmd/libmpi; \
		rm -f $(LIB)/libmpi_abi.so.h $(LIB)/libmpi_abi.h; \
		for f in calls special callbacks choices descriptors extensions calls8 special8 callbacks8 choices8 descriptors8 extensions8; do \
			case $$f in *8) of=-DIMPI_INTEGER8;; *) of=;; esac; source=$$f; test $$f = calls8 || source=$${f%8}; \
			$$($(GO) env CC) -std=gnu11 -O2 -Wall -Wextra -fPIC $$of -Iinclude -c -o $(LIB)/$$f.o cmd/impifort/library/$$source.c; \
		done; \
		rm -f $(LIB)/libimpi_fortran.a $(LIB)/libimpi_fortran8.a; \
		(cd $(LIB); ar rcsD libimpi_fortran.a calls.o special.o callbacks.o choices.o descriptors.o extensions.o; \
		ar rcsD libimpi_fortran8.a calls8.o special8.o callbacks8.o choices8.o descriptors8.o extensions8.o; \
		rm calls.o special.o callbacks.o choices.o descriptors.o extensions.o calls8.o special8.o callbacks8.o choices8.o descriptors8.o extensions8.o); \
		ln -sf libmpi_abi.so.1 $(LIB)/libmpi_abi.so; ln -sf libmpi_abi.so.1 $(LIB)/libmpi_abi.so.0; \
		cp cmd/impicc/impi.pc $(LIB)/pkgconfig/impi.pc; cp internal/mpiexec/files/impi-* $(LIB)/; \
	fi

# Programs that get man pages, and all but the compilers completions; impi-node's commands have pages of their own.
DOCUMENTED := impi-node impi-server impi-bench impi-conform impi-sim impiexec impicc impicxx impifort

install: $(if $(BUILT),,build) ## install programs, library, headers, man pages, docs, SBOM and systemd's units under PREFIX=/usr/local
	@for d in bin lib/pkgconfig lib/systemd/system include share/impi share/doc/impi; do mkdir -p $(DESTDIR)$(PREFIX)/$$d; done
	cp -P --remove-destination $(BIN)/impi-* $(BIN)/impicc $(BIN)/impicxx $(BIN)/impifort $(BIN)/impiexec $(BIN)/mpicc_abi $(BIN)/mpicxx_abi $(DESTDIR)$(PREFIX)/bin/
	cp include/mpi.h include/mpi_generated.h include/mpi-ext.h include/mpif.h include/mpi.F90 include/mpi_f08.F90 $(DESTDIR)$(PREFIX)/include/
	@if test -e $(LIB)/libmpi_abi.so.1; then set -x; cp -P --remove-destination $(LIB)/libmpi_abi.so* $(LIB)/libimpi_fortran.a $(LIB)/libimpi_fortran8.a $(LIB)/impi-valgrind.supp $(LIB)/impi-batch.gdb $(DESTDIR)$(PREFIX)/lib/; fi
	cp cmd/impicc/impi.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	for p in $(DOCUMENTED); do if test -x $(BIN)/$$p; then $(BIN)/$$p completion install $(DESTDIR)$(PREFIX)/share || exit 1; fi; done
	for u in internal/packaging/*.service; do sed 's|/opt/impi/bin/|$(PREFIX)/bin/|' "$$u" >"$(DESTDIR)$(PREFIX)/lib/systemd/system/$${u##*/}" || exit 1; done
	@mkdir -p $(DESTDIR)$(PREFIX)/lib/sysusers.d
	cp internal/packaging/impi.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/impi.conf
	cp docs/grafana.json internal/packaging/names.env $(DESTDIR)$(PREFIX)/share/impi/
	@for d in plugins/c examples/plugins/python/src; do mkdir -p $(DESTDIR)$(PREFIX)/share/impi/sdk/$$d; done
	cp plugins/c/*.[ch] plugins/c/Makefile $(DESTDIR)$(PREFIX)/share/impi/sdk/plugins/c/
	find plugins/sdk -type f ! -path '*/testdata/*' ! -name '*_test.go' -exec cp --parents {} $(DESTDIR)$(PREFIX)/share/impi/sdk/ \;
	cp examples/plugins/python/src/*.py $(DESTDIR)$(PREFIX)/share/impi/sdk/examples/plugins/python/src/
	cp -R docs/. LICENSE NOTICE $(DESTDIR)$(PREFIX)/share/doc/impi/
	@list=$(DESTDIR)$(PREFIX)/share/doc/impi/impi.cdx.json; \
	if command -v $(firstword $(GO)) >/dev/null 2>&1 && $(SBOM) -output $$list .; then :; \
	elif test -e out/impi.cdx.json; then cp out/impi.cdx.json $$list; echo "the list of modules is that of an earlier make sbom"; \
	else echo "the list of modules is not installed: make sbom makes it, where there is Go and a network"; fi

# Where make package puts packages, and what is in them.
PACKAGES ?= out/packages
STAGE ?= $(PACKAGES)/stage
KINDS ?= deb rpm
# Whom packages name as their maintainer: who makes some for others writes himself here. Nobody is
# taken from git or the machine, so that the same commit makes the same packages for everybody.
MAINTAINER ?= unnamed maintainer <root@localhost>

# What programs and library are made of, for tools that look for known faults. Neither the time nor a
# random number is in it, so that two of one commit are the same.
SBOM = $(GO) tool -modfile=package.mod cyclonedx-gomod mod -json -noserial -notimestamp -std -licenses

sbom: ## list the modules that impi is made of as CycloneDX in out/impi.cdx.json
	@mkdir -p out
	$(SBOM) -output out/impi.cdx.json .

# The packages have the date of the commit, so that two of them are the same to the last byte.
package: stage ## make packages for Debian and RPM in out/
	@$(MAKE) --no-print-directory pack

.PHONY: stage pack
stage: sbom
	@rm -rf $(STAGE); mkdir -p $(STAGE)
	$(MAKE) --no-print-directory install DESTDIR=$(abspath $(STAGE)) PREFIX=/opt/impi
	@mkdir -p $(STAGE)/usr/lib; mv $(STAGE)/opt/impi/lib/systemd $(STAGE)/opt/impi/lib/sysusers.d $(STAGE)/usr/lib/
	@mv $(STAGE)/opt/impi/share/impi/names.env $(STAGE)/
	@find $(STAGE)/opt/impi -type f \( -path '*/bin/*' -o -name '*.so.*' \) -exec strip --strip-unneeded {} +

pack:
	@mkdir -p $(PACKAGES)
	@libc=$$(find $(STAGE)/opt/impi -type f \( -path '*/bin/*' -o -name '*.so.*' \) -exec objdump -p {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1); \
	for kind in $(KINDS); do \
		LIBC=$${libc#GLIBC_} MAINTAINER="$(MAINTAINER)" STAGE=$(STAGE) VERSION=$(or $(VERSION),$$($(GO) run ./internal/version/print)) ARCH=$$($(GO) env GOARCH) \
		SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 0) \
		$(GO) tool -modfile=package.mod nfpm package --config internal/packaging/nfpm.yaml --packager $$kind --target $(PACKAGES) || exit 1; \
	done

demo: build ## run heat2d on two sites of this machine
	$(BIN)/impi-node -config examples/heat2d/job.hcl

# These begin first if all packages are tested.
FIRST = $(if $(filter ./...,$(PKGS)),$(LONGEST))
# gotestsum prints a line for each package, what failed and the numbers; what was not run, and
# why, comes last. $(1) are flags of go test. Paths are trimmed, so that what another checkout
# has compiled counts, and programs that tests build have nothing for debuggers, which halves the
# time of the linker. A test that fails, by no data race, runs once more when all others have
# ended; one that passes then is named: docs/decisions/0053-a-failed-test-runs-again.md.
run-tests = @mkdir -p out; rm -f out/$(PART)unsteady.txt; status=0; \
	all=$$($(GO) list $(FIRST) $(PKGS)) || exit 1; \
	export GOFLAGS="$$GOFLAGS -trimpath -ldflags=-w"; \
	$(GOTESTSUM) --format pkgname --hide-summary skipped --jsonfile out/$(PART)tests.json \
		--rerun-fails=$(RERUN) --rerun-fails-max-failures 6 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--rerun-fails-report out/$(PART)unsteady.txt --packages "$$(echo $$all)" -- $(1) || status=$$?; \
	if [ -s out/$(PART)unsteady.txt ]; then echo "FAILED AT FIRST, and ran again. Find out why:"; sed 's/^/  /' out/$(PART)unsteady.txt; fi; \
	$(GO) run ./internal/skips/list $(if $(STRICT),-strict $(STRICT)) out/$(PART)tests.json || status=1; \
	exit $$status

# What the tests of these packages watch is other processes, which are built without the race
# detector, or one goroutine: with it they take three times as long, and it sees nothing. Those of
# core/ that are not among them have goroutines in their tests; core/mpi runs all of core/ with it.
PLAIN := ./internal/peers/... ./internal/ctest ./internal/vendors ./internal/matrix/... ./internal/conformance ./internal/conformance/protocol ./internal/conformance/faults/... ./internal/sim/... ./internal/cmdline ./internal/repotest ./examples ./examples/wordcount ./cmd/impi-bench/... ./cmd/impi-sim ./cmd/impiexec ./config ./include ./internal/abi \
	$(addprefix ./core/,agent agree coll datatype dynamic ending flow match membership message mpierr names rma route spawn startup sums wire)

# Many tests wait for processes, so that three packages keep two cores busy. make soak has vet.
# With RACED=1, as in CI, each test runs once: with the race detector where make race has it, and
# without in PLAIN, in the clusters of cmd/impi-node and where a test says that it cannot be raced.
# These are parts, each with its own lists at its end. The clusters wait most, and run beside the others.
test: ## run all tests, what was not run comes last; RACED=1: those of make race with the race detector
ifeq ($(RACED)-$(PKGS),1-$(ALL))
	@status=0; mkdir -p out; \
	$(MAKE) --no-print-directory test PKGS=./cmd/impi-node PART=clusters- >out/clusters.txt 2>&1 & clusters=$$!; \
	$(MAKE) --no-print-directory test PKGS="$(PLAIN)" || status=1; \
	$(MAKE) --no-print-directory test PKGS="./internal/node ./core/resume" RUN='^(TestSpawnOnManyHosts|TestModel)$$' PART=large- || status=1; \
	$(MAKE) --no-print-directory race PART=raced- || status=1; \
	wait $$clusters || status=1; cat out/clusters.txt; \
	exit $$status
else
	$(call run-tests,-p 3 -vet=off -timeout 60m $(if $(RUN),-run '$(RUN)'))
endif

soak: export IMPI_TEST_SOAK = $(SOAK)
soak: ## run all tests, and those that take long, with the race detector where cgo works; SOAK=long: with every repetition, for hours
ifeq ($(PKGS),$(ALL))
	@$(MAKE) --no-print-directory soak-plain PKGS="$(PLAIN)"
	@$(call race-without,$(PLAIN))
else
	@$(MAKE) --no-print-directory soak-race
endif

# Runs the tests of all packages but those of $(1) with the race detector.
race-without = all=$$($(GO) list $(LONGEST) $(ALL)) && but=$$($(GO) list $(1)) || exit 1; \
	$(MAKE) --no-print-directory soak-race PKGS="$$(echo "$$all" | grep -vxF "$$but" | tr '\n' ' ')"

# The clusters of cmd/impi-node take nine minutes with it, for which CI has no time.
race: ## run the tests with the race detector that show most in little time, as CI does
	@$(call race-without,$(PLAIN) ./cmd/impi-node)

# Go's cache does not see the programs that such tests build, so that all of them run.
.PHONY: soak-race soak-plain
soak-race:
	$(call run-tests,$(RACE) -p 3 -count 1 -timeout $(if $(filter long,$(SOAK)),12h,40m))
soak-plain:
	$(call run-tests,-p 3 -count 1 -timeout $(if $(filter long,$(SOAK)),12h,90m))

lint: ## gofmt, go vet and golangci-lint (its first run builds it)
	@unformatted=$$(gofmt -l cmd config core examples internal plugins transports); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w these:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet $(PKGS)
	$(LINT) run $(filter-out $(SDK),$(PKGS))
	cd plugins/sdk && $(GO) tool -modfile=../../tools.mod golangci-lint run ./...

bench: ## run the Go benchmarks; bin/impi-bench measures whole jobs
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKGS)

fuzz: ## fuzz all targets within FUZZBUDGET=10m, or each for FUZZTIME; FUZZ=regexp
	$(GO) run ./internal/fuzz -budget $(FUZZBUDGET) -each $(FUZZTIME) -only '$(FUZZ)' $(PKGS)

sim: ## simulate 2,000 jobs with faults (SEEDS=A:B), 1,000 that meet (WORLDS), 1,000 that lose procs (SURVIVE)
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/ ./cmd/impi-sim
	$(BIN)/impi-sim -seeds $(SEEDS) -failures 5 -coverage -progress
	$(BIN)/impi-sim -worlds -seeds $(WORLDS) -failures 5 -coverage -progress
	$(BIN)/impi-sim -survive -seeds $(SURVIVE) -failures 5 -progress

sim-mutants: ## show that the simulator finds faults in what it runs; MUTANTS=regexp
	$(GO) run ./internal/sim/mutant/run -only '$(MUTANTS)'

conform: build ## judge ours against the standard: docs/conformance/impi.md
	$(BIN)/impi-conform protocol -iut impi -parallel 2 -markdown docs/conformance/impi.md

peers: ## get LAM/MPI, C programs and MPICH, which tests and benchmarks run with, outside of the tree
	$(GO) run ./internal/peers/make

conform-mutants: ## show that impi-conform protocol finds faults in ours; MUTANTS=regexp
	$(GO) run ./internal/conformance/faults/run -only '$(MUTANTS)'

matrix: build ## run jobs over every transport with every fault: docs/matrix.md
	$(GO) build -o $(BIN)/matrix-check ./internal/matrix/check
	$(GO) build -o $(BIN)/ ./internal/peers/exchange
	@mkdir -p out; rm -f out/matrix.json
	$(GO) run ./internal/matrix/run -bin $(BIN) -keep out/matrix.json -out docs/matrix.md
	$(GO) run ./internal/matrix/run -peers -bin $(BIN) -out docs/matrix.md

# Programs are copied, as make install does: of a file that the linker has just written the kernel maps
# more at a time, which counts as resident memory.
performance: build ## measure what docs/performance.md says, for a quarter of an hour; ONLY=regexp
	@for f in $(BIN)/*; do cp -p $$f $$f.copy && mv $$f.copy $$f || exit 1; done
	$(GO) run ./internal/performance/run -bin $(BIN) -only '$(ONLY)'

wan: build ## measure over a wide area that is made on this machine; WAN='-quick', WAN=-help
	$(GO) build -o $(BIN)/wan-pair ./internal/wan/pair
	$(GO) build -o $(BIN)/wan-collective ./internal/wan/collective
	$(GO) run ./internal/wan/run -bin $(BIN) $(WAN)

campaign: build ## go on with the long searches for faults for BUDGET=10m: docs/campaign.md; WHAT=calls
	$(GO) build -o $(BIN)/campaign ./internal/campaign/run
	$(BIN)/campaign -bin $(BIN) -what '$(WHAT)' -budget $(BUDGET)

clean: ## remove what the other targets made
	rm -rf $(BIN) $(LIB) out
