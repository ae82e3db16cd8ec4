# Works with the make of macOS, GNU make 3.81.

# Every module but the tools, the root first: what not every user of the
# library needs has a go.mod of its own.
MODULES := . $(shell find . -mindepth 2 -name go.mod -not -path './tools/*' -not -path './.*' | sort | sed 's|/go.mod$$||')
# All packages of all modules.
ALL := $(MODULES:%=%/...)

# each runs a command in every module.
each = for m in $(MODULES); do (cd $$m && $(1)) || exit 1; done

.PHONY: help test check test-long lint requestpath build-all fmt cover bench demo deps docs

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /	/' | expand -t 12

# What is judged in real time mostly waits: two packages at a time, and none while another is built. Beside others
# the calls of the fleets are late, so they have the machine to themselves, as the judges do.
REALTIME := ./cmd/crawler-demo ./examples ./internal/testkit/fleet ./tests/faults ./tests/queue ./tests/shown
FLEETS := ./tests/fleets ./tests/wakes ./cmd/internal/proxy
# The other modules that are tested.
OTHERS := ./examples/stack/... ./rationotel/... ./rationprom/... ./store/storetest/external/... ./tests/dashboard/...
JUDGES := ./tests/judges/...
inparallel = $$(go list ./... ./cmd/... ./tests/... | grep -vxF "$$(go list $(REALTIME) $(FLEETS))")

# The packages of the library, each with its own tests, and a fleet of four processes.
QUICK := . ./dashboard ./internal/... ./limit ./provider/... ./store/... ./rationtrace ./tests/smoke

START := $(shell date +%s)
took = s=$$(($$(date +%s) - $(START))); took="$$((s / 60)) min $$((s % 60)) s"

test: deps ## what a change needs, within a minute: each package's own tests, and a short fleet
	@out=$$(mktemp) && { RATION_TESTS=quick go test -vet=off -short $$(go list $(QUICK) | grep -v /testkit) 2>&1; echo "$$?" >$$out.rc; } | \
		tee $$out | grep -v 'no test files'; rc=$$(cat $$out.rc); n=$$(grep -c '^ok' $$out); rm -f $$out $$out.rc; $(took); \
		if [ "$$rc" != 0 ]; then echo "make test: failed after $$took" >&2; exit 1; fi; \
		echo "make test: the tests of $$n packages, a fleet of 4 processes among them, passed in $$took;" \
			"left to make check: lint, the race detector, what waits in real time, fleets, faults, commands, judges, other modules, the browser"

check: deps lint requestpath ## what CI runs beside make test: lint, and all tests with the race detector, long ones shortened
	@echo go test -race -short; go test -vet=off -race -short -timeout 15m $(inparallel)
	@go test -vet=off -race -short -timeout 8m -p 2 $(REALTIME)
	@go test -vet=off -race -short -timeout 10m -p 1 $(FLEETS)
	@go test -vet=off -race -short -timeout 8m -p 2 $(OTHERS)
	@go test -vet=off -race -short -timeout 8m -p 1 $(JUDGES) -args -seconds 8
	@$(took); echo "make check: passed in $$took"

test-long: deps ## all tests in full length: what CI runs at night
	@echo go test -race; go test -race -timeout 25m $(inparallel)
	@go test -race -timeout 40m -p 1 $(REALTIME) $(FLEETS) $(OTHERS) $(JUDGES)
	@go -C benchmarks test -race -timeout 8m ./...
	@go -C tools test -count=1 ./...
	@$(took); echo "make test-long: passed in $$took"

docs: ## all pages as HTML with a search, to read offline: docs/html/index.html
	@go -C tools run ./pages -root .. -out ../docs/html

# With -race, so that what is compiled here is not compiled again for the tests of make check.
lint: ## gofmt, go vet, go mod tidy, staticcheck, the layout, and luacheck if installed
	@echo gofmt; out=$$(gofmt -l .) && test -z "$$out" || { echo "not formatted, run make fmt:" >&2; echo "$$out" >&2; exit 1; }
	@echo go vet; go vet -race $(ALL)
	@echo go mod tidy; $(call each,go mod tidy -diff); go -C tools mod tidy -diff
	@echo staticcheck; bin=$$(go -C tools tool -n staticcheck) && GOFLAGS="$$GOFLAGS -race" "$$bin" $(ALL)
	@if command -v luacheck >/dev/null; then echo luacheck; luacheck --quiet --codes --no-color internal/redisstore/lua; else echo "luacheck: not installed, skipped"; fi

requestpath: ## count the functions and files that a request enters
	@echo requestpath; go -C tools test -count=1 -short ./...

PLATFORMS := linux/amd64 linux/386 linux/arm64 linux/arm darwin/amd64 darwin/arm64 \
	windows/amd64 windows/386 windows/arm64 freebsd/amd64 freebsd/386 freebsd/arm64 freebsd/arm

build-all: ## build all packages and check them with their tests for every platform (takes some minutes)
	@for p in $(PLATFORMS); do echo "$$p"; export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; \
		$(call each,go build ./... && go vet ./...); done

fmt: ## gofmt all files
	@gofmt -l -w .

cover: deps ## run the tests and write their coverage to coverage.html
	@go test -timeout 8m -coverpkg=./... -coverprofile=coverage.out ./...
	@go tool cover -html=coverage.out -o coverage.html
	@go tool cover -func=coverage.out | tail -n 1

bench: deps ## measure what it costs, beside its peers (takes some minutes)
	@go -C benchmarks run .

demo: ## run the crawler demo
	@go run ./cmd/crawler-demo

deps:
	@scripts/install-test-deps
