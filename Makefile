# Works with the make of macOS, GNU make 3.81.

# Every module but the tools, the root first: what not every user of the
# library needs has a go.mod of its own.
MODULES := . $(shell find . -mindepth 2 -name go.mod -not -path './tools/*' -not -path './.*' | sort | sed 's|/go.mod$$||')

# each runs a command in every module.
each = for m in $(MODULES); do (cd $$m && $(1)) || exit 1; done

.PHONY: help test test-ci test-all test-long lint build-all fmt cover bench demo deps

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /	/' | expand -t 12

# What is judged in real time mostly waits: two packages at a time, and none while another is built.
REALTIME := ./cmd/crawler-demo ./examples ./internal/testkit/fleet ./tests/faults ./tests/fleets ./tests/queue
inparallel = $$(go list ./... ./cmd/... | grep -vxF "$$(go list $(REALTIME))")

START := $(shell date +%s)
took = s=$$(($$(date +%s) - $(START))); echo "make $@ took $$((s / 60)) min $$((s % 60)) s"

test: deps lint ## what a change needs: lint, and all packages but tests/fleets with the race detector, long tests shortened
	@echo go test -race -short; go test -race -short -timeout 8m $(inparallel)
	@go test -race -short -timeout 8m -p 2 $(filter-out ./tests/fleets,$(REALTIME))
	@$(took)

test-ci: test ## what CI runs: make test, the fleets, and the modules below, long tests shortened
	@$(call modules,-short)
	@go test -race -timeout 15m ./tests/fleets
	@$(took)

test-all: test test-long ## make test and make test-long
	@$(took)

test-long: deps ## what make test leaves out: all tests in full length, the fleets, and the modules below
	@echo go test -race; go test -race -timeout 15m $(inparallel)
	@go test -race -timeout 15m -p 1 $(REALTIME)
	@$(call modules,)
	@$(took)

# modules runs the tests of what has a go.mod of its own.
modules = for m in $(filter-out . ./cmd,$(MODULES)); do (cd $$m && echo "go test -race $(1) $$m" && \
	go build -race ./... && go test -race $(1) -timeout 8m -p 1 ./...) || exit 1; done

lint: ## gofmt, go vet, go mod tidy, staticcheck, the layout, and luacheck if installed
	@echo gofmt; out=$$(gofmt -l .) && test -z "$$out" || { echo "not formatted, run make fmt:" >&2; echo "$$out" >&2; exit 1; }
	@echo go vet; $(call each,go vet ./...)
	@echo go mod tidy; $(call each,go mod tidy -diff); go -C tools mod tidy -diff
	@echo staticcheck; bin=$$(go -C tools tool -n staticcheck) && { $(call each,"$$bin" ./...); }
	@echo layout; go test -count=1 ./tests/layout
	@if command -v luacheck >/dev/null; then echo luacheck; luacheck --quiet --codes --no-color internal/redisstore/lua; else echo "luacheck: not installed, skipped"; fi

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

bench: deps ## measure what it costs against its targets, beside its peers (takes some minutes)
	@go -C benchmarks run ./targets

demo: ## run the crawler demo
	@go run ./cmd/crawler-demo

deps:
	@scripts/install-test-deps
