# `make` alone lists what one can do. A target's help is the `##` comment behind it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The tools that make builds for itself live in target/, so `make clean` takes them along.
TOOLS := $(CURDIR)/target/tools
# It finds the komado that was built with it beside itself.
BENCH := $(or $(CARGO_TARGET_DIR),target)/release/komado-bench
DENY := PATH="$$PATH:$(TOOLS)/bin" cargo deny

.PHONY: help run demo test soak test-features test-api test-model test-clients lint deny audit deny-tool bench doc check-data setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## watch a conversation outgrow its window and go on, then serve the built-in scripted model until Ctrl-C
	cargo build -p komado
	@cargo run -q -p komado -- dev demo
	@cargo run -q -p komado -- serve --upstream scripted

demo: ## only watch
	@cargo run -q -p komado -- dev demo

test: setup lint test-features ## everything that must pass: lint, each Cargo feature alone, then every test
	cargo test --workspace --no-fail-fast

soak: setup ## the long tests in full: random journals, killed writers, servers and workers; prints what to record
	@scripts/soak

# The libraries with each of their features alone; lint builds all of them together.
test-features: ## the libraries with each Cargo feature alone, without a warning
	@for build in \
		"komado-sdk" "komado-sdk --features client" \
		"komado-store --features postgres" "komado-store --features redis" \
		"komado-provider --features server"; do \
		echo "cargo clippy --no-default-features -p $$build"; \
		cargo clippy -q --locked --no-default-features -p $$build -- -D warnings; \
	done

test-api: ## the HTTP API against its own document, with schemathesis: a download once, then two minutes
	@scripts/test-api

test-model: ## a real model past its window: downloads 130 MB once, takes about ten minutes
	@scripts/test-model

test-clients: ## real agents in small windows, with and without us: downloads 1.2 GB once, takes more than an hour
	@scripts/test-clients $(CLIENTS)

lint: ## formatting, clippy, docs and dependencies, all without a warning
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings
	@$(MAKE) --no-print-directory doc
	@$(MAKE) --no-print-directory deny

deny: deny-tool ## what the dependency tree may contain: versions, licences, sources
	$(DENY) check bans licenses sources

audit: deny-tool ## the same, and known vulnerabilities: downloads the advisory database
	$(DENY) check

bench: setup ## how fast a session takes an entry, how fast it opens, what a plan costs, what a request takes, what the gateway adds, what a store adds, what a task holds
	cargo build --release -p komado -p komado-bench
	$(BENCH) append
	$(BENCH) open
	$(BENCH) plan
	$(BENCH) request --mb 500
	$(BENCH) gateway
	$(BENCH) store --servers
	$(BENCH) task
	$(BENCH) task --calls 2000

doc: ## the library's documentation, in target/doc
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace

check-data: ## check the laws on your own transcripts: make check-data KOMADO_DATA=path
	@if [ -z "$(KOMADO_DATA)" ]; then \
		echo "check-data: KOMADO_DATA is not set: say where your transcripts are" >&2; \
		echo "" >&2; \
		echo "  make check-data KOMADO_DATA=path/to/transcripts" >&2; \
		exit 2; \
	fi
	cargo run --release -p komado --features check-data --example check_data -- "$(KOMADO_DATA)"

setup: ## install what the tests need (jq, sqlite3, curl, PostgreSQL, Redis, the official SDKs), if it is missing
	@scripts/setup

clean: ## remove everything that was built
	cargo clean

# Its own release profile is made for shipping (fat LTO); for one check a second long, a third of the build time is better.
deny-tool:
	@PATH="$$PATH:$(TOOLS)/bin" command -v cargo-deny >/dev/null || { \
		echo "deny: cargo-deny is not on PATH: building it once, into target/tools (about two minutes)" >&2; \
		CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
			cargo install --locked --root "$(TOOLS)" --version '^0.20' cargo-deny; \
	}
