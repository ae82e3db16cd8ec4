# Works with the make of macOS, GNU make 3.81.

# Every module but the tools, the root first: what not every user of the
# library needs has a go.mod of its own.
MODULES := . $(shell find . -mindepth 2 -name go.mod -not -path './tools/*' -not -path './.*' | sort | sed 's|/go.mod$$||')

# each runs a command in every module.
each = for m in $(MODULES); do (cd $$m && $(1)) || exit 1; done

.PHONY: help test lint build-all fmt cover bench demo deps

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /	/' | expand -t 12

# One package at a time: the fleet tests want the machine for themselves, and not while
# the next package is built.
test: deps lint ## check everything and run all tests (installs redis-server if it is missing)
	@$(call each,echo "go test -race $$m" && go build -race ./... && go test -race -p 1 -timeout 8m ./...)

lint: ## gofmt, go vet, go mod tidy, staticcheck, and luacheck if installed
	@echo gofmt; out=$$(gofmt -l .) && test -z "$$out" || { echo "not formatted, run make fmt:" >&2; echo "$$out" >&2; exit 1; }
	@echo go vet; $(call each,go vet ./...)
	@echo go mod tidy; $(call each,go mod tidy -diff); go -C tools mod tidy -diff
	@echo staticcheck; bin=$$(go -C tools tool -n staticcheck) && { $(call each,"$$bin" ./...); }
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
