# Two commands do all the set-up: `make rehearse` runs the main job in the lab, `make test` passes the tests.
.DEFAULT_GOAL := help
STACK ?= infra
PACE ?= 0
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-16s %s\n", $$1, $$2 }'

$(VENV)/installed: requirements.lock tests/oracle.lock
	@if command -v uv >/dev/null; then \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) $(VENV); \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r tests/oracle.lock; \
	else \
	  test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tests/oracle.lock; \
	fi
	@touch $@

.PHONY: setup
setup: $(VENV)/installed ## Install the pinned Python packages into .venv

.PHONY: test
test: setup lint types ## Format, lint, types and unit tests; no network, no command line tools
	$(BIN)/pytest --cov

.PHONY: lint
lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --config pyproject.toml

.PHONY: types
types: setup
	$(BIN)/mypy .

.PHONY: rehearse
rehearse: setup ## Build a whole cluster in the lab: STACK=infra|apps PACE=0|1
	$(BIN)/python -m lab rehearse --stack $(STACK) --pace $(PACE)

.PHONY: lab-test
lab-test: setup ## The tests that run the real engine in the lab
	$(BIN)/pytest -m 'lab and not trial' tests/lab -p no:cacheprovider

.PHONY: lab-trials
lab-trials: setup ## Lab runs that are long, or have not been seen green yet
	$(BIN)/pytest -m 'lab and trial' tests/lab -p no:cacheprovider

.PHONY: faults
faults: setup ## Try every fault on the real engine and write docs/faults.md from the results
	$(BIN)/python -m lab.fault_runs; code=$$?; $(BIN)/python -m lab.fault_document && exit $$code

.PHONY: toolchain
toolchain: setup ## List the lab's binaries: name, version, origin, size
	$(BIN)/python -m lab toolchain

.PHONY: schema
schema: setup ## Write the JSON Schema of the stack files anew
	$(BIN)/python -m config.schema

.PHONY: cilium-manifest
cilium-manifest: setup ## Write manifests/cilium-STACK.yaml for install: inline; needs helm
	$(BIN)/python -m components.cilium_manifest $(STACK)

.PHONY: kubeconfig
kubeconfig: ## Write kubeconfig.STACK and talosconfig.STACK, readable by you only
	@umask 077 && pulumi stack output --stack $(STACK) --show-secrets kubeconfig > kubeconfig.$(STACK)
	@umask 077 && pulumi stack output --stack $(STACK) --show-secrets talosconfig > talosconfig.$(STACK)
	@echo "export KUBECONFIG=$$PWD/kubeconfig.$(STACK) TALOSCONFIG=$$PWD/talosconfig.$(STACK)"

.PHONY: resume
resume: setup ## Go on after a killed engine: adopt or clear what it had begun, then `pulumi up`
	$(BIN)/python -m operations.resume --stack $(STACK)

.PHONY: doctor
doctor: setup ## Ask every gate of a living cluster once, and change nothing
	$(BIN)/python -m operations.doctor --stack $(STACK)

.PHONY: preview
preview: setup ## Preview a committed stack from an empty state; needs no secrets and no cluster
	$(BIN)/python .ci/preview.py $(STACK)

.PHONY: preview-guard
preview-guard: setup ## Preview the real state; fails when it would lose a machine, a key or the bootstrap
	@set -e; plan=$$(mktemp); trap 'rm -f "$$plan"' EXIT; \
	  pulumi preview --json --stack $(STACK) --non-interactive > "$$plan"; \
	  $(BIN)/python .ci/guard.py < "$$plan"

.PHONY: lock
lock: ## Pin the Python packages anew
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --all-extras --python-version 3.11 pyproject.toml --output-file requirements.lock
