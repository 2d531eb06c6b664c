# GPU Steward. A machine needs Python 3.13 and make; everything else is installed below this folder
# on the first use: uv and the SAM CLI into .tools/, the project's packages into .venv/.
# Set-up speaks on stderr only, so that `make replay` and `make invoke` print nothing but JSON.

UV_VERSION := 0.13.9
SAM_VERSION := 1.170.0

ARCH ?= arm64
LOCAL_ARCH := x86_64
STAGE ?= default
DEPLOY_FLAGS ?= --guided
MARKS ?= not sam

UV := .tools/uv/bin/uv
SAM := .tools/bin/sam
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.tools/bin:$(PATH)
export PYTHONPATH := $(CURDIR):$(CURDIR)/layers/steward
export SAM_CLI_TELEMETRY := 0
export UV_PYTHON_DOWNLOADS := never

UV_READY := .tools/uv/ready-$(UV_VERSION)
SAM_READY := .tools/sam-ready-$(SAM_VERSION)
VENV_READY := .venv/ready
GOVERNANCE ?= layers/policy/governance.yaml
POLICY := layers/policy/policy.json
STEWARD := $(shell find layers/steward functions -name '*.py' -o -name '*.json' 2>/dev/null)

.DEFAULT_GOAL := help
.SILENT:
.DELETE_ON_ERROR:
.PHONY: help demo test lint build invoke replay rig bench deploy lock policy clean setup
.PHONY: capture fetch-tick metrics-check redrive
MAKEFLAGS += --no-print-directory

help: ## list the commands
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV_READY) ## play an incident through the real functions and show its cards
	$(PYTHON) -m local.demo

test: $(VENV_READY) ## run the tests that need no build: make test [TEST_FLAGS="-k idle"]
	$(PYTHON) -m pytest -m "$(MARKS)" $(TEST_FLAGS)

replay: $(VENV_READY) ## replay a recording: make replay RECORDING=<folder>
	$(if $(RECORDING),,echo "make replay RECORDING=<folder>" >&2; exit 2)
	$(PYTHON) -m local.replay "$(RECORDING)"

# These three read a real cluster with your own access: AWS_PROFILE, and kubectl's kubeconfig.
capture: $(VENV_READY) ## record a live cluster: make capture CLUSTER=<name> FROM=<time> TO=<time> [OUT=<folder>]
	$(if $(and $(CLUSTER),$(FROM),$(TO)),,echo "make capture CLUSTER=<name> FROM=<time> TO=<time>" >&2; exit 2)
	$(PYTHON) -m local.capture --cluster "$(CLUSTER)" --from "$(FROM)" --to "$(TO)" \
		--governance "$(GOVERNANCE)" $(if $(OUT),--out "$(OUT)") $(if $(TICK),--tick "$(TICK)") \
		$(if $(HISTORY),--history "$(HISTORY)") $(if $(KUBE_CONTEXT),--kube-context "$(KUBE_CONTEXT)") \
		$(if $(METRICS_URL),--metrics-url "$(METRICS_URL)") $(if $(RENAME_JOBS),--rename-jobs)

fetch-tick: $(VENV_READY) ## fetch a production tick as a recording: make fetch-tick CLUSTER=<name> AT=<time>
	$(if $(and $(CLUSTER),$(AT)),,echo "make fetch-tick CLUSTER=<name> AT=<time> [BUCKET=<name>]" >&2; exit 2)
	$(PYTHON) -m local.fetch_tick --cluster "$(CLUSTER)" --at "$(AT)" --governance "$(GOVERNANCE)" \
		$(if $(BUCKET),--bucket "$(BUCKET)") $(if $(STACK),--stack "$(STACK)") $(if $(OUT),--out "$(OUT)")

metrics-check: $(VENV_READY) ## say which metrics a live cluster has: make metrics-check CLUSTER=<name> [JSON=1]
	$(if $(CLUSTER),,echo "make metrics-check CLUSTER=<name>" >&2; exit 2)
	$(PYTHON) -m local.metrics_check --cluster "$(CLUSTER)" --governance "$(GOVERNANCE)" \
		$(if $(METRICS_URL),--metrics-url "$(METRICS_URL)") $(if $(JSON),--json)

# This one works on a deployed stack, with your own access.
redrive: $(VENV_READY) ## say what failed for good, and send it back: make redrive [QUEUE=<name> YES=1] [STACK=<stack>]
	$(PYTHON) -m local.redrive $(if $(STACK),--stack "$(STACK)") $(if $(QUEUE),--queue "$(QUEUE)") $(if $(YES),--yes)

invoke: ## run one built function in a container: make invoke FUNCTION=take_snapshot EVENT=events/<file>
	$(if $(and $(FUNCTION),$(EVENT)),,echo "make invoke FUNCTION=<folder> EVENT=events/<file>" >&2; exit 2)
	$(MAKE) --silent .aws-sam/ready-$(LOCAL_ARCH)
	$(PYTHON) -m local.invoke "$(FUNCTION)" "$(EVENT)"

rig: $(VENV_READY) ## keep the local rig up, for sam local invoke by hand
	$(PYTHON) -m local.invoke --serve

bench: $(VENV_READY) ## measure cold starts beside a floor, snapshots, evaluations, storms of triggers, deliveries
	$(MAKE) --silent .aws-sam/ready-$(LOCAL_ARCH)
	$(PYTHON) -m local.bench
	$(PYTHON) -m local.bench_snapshot
	$(PYTHON) -m local.bench_evaluate
	$(PYTHON) -m local.bench_triggers
	$(PYTHON) -m local.bench_alerts

lint: $(VENV_READY) ## check style, types, architecture, template and locks
	scripts/lint $(UV)

build: ## build functions and layers: make build [ARCH=arm64|x86_64] [GOVERNANCE=<policy file>]
	rm -f .aws-sam/ready-*
	$(MAKE) .aws-sam/ready-$(ARCH)

deploy: build ## build and deploy: make deploy [STAGE=<section of samconfig.toml>] [GOVERNANCE=<policy file>]
	$(SAM) deploy --config-env "$(STAGE)" $(DEPLOY_FLAGS)

policy: $(POLICY) ## check and compile GOVERNANCE, and write the schema that editors check it with
	$(PYTHON) -m local.policy schema layers/policy/governance.schema.json

lock: $(UV_READY) ## compile the requirements again (UPGRADE=--upgrade for newer versions)
	scripts/lock $(UV) $(UPGRADE)

clean: ## remove what builds, tests and checks left (environments stay)
	rm -rf .aws-sam build $(POLICY) .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find functions layers local tests examples -name __pycache__ -prune -exec rm -rf {} +

setup: $(VENV_READY) $(SAM_READY) ## install now what other commands install when they first need it

# --- environments ----------------------------------------------------------------------------------

$(UV_READY):
	echo "make: installing uv $(UV_VERSION) into .tools" >&2
	rm -rf .tools/uv
	python="$$(scripts/find-python)" && "$$python" -m venv .tools/uv >&2
	.tools/uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION) >&2
	touch $@

$(VENV_READY): requirements/dev.txt .python-version | $(UV_READY)
	echo "make: installing the project's packages into .venv" >&2
	python="$$(scripts/find-python)" && \
		{ .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null || \
		$(UV) venv --quiet --clear --python "$$python" .venv >&2; }
	$(UV) pip sync --quiet --require-hashes --python .venv/bin/python requirements/dev.txt >&2
	touch $@

# The SAM CLI pins boto3 and click: it lives in an environment of its own (docs/decisions/0001).
$(SAM_READY): | $(UV_READY)
	echo "make: installing the SAM CLI $(SAM_VERSION) into .tools" >&2
	rm -f .tools/sam-ready-*
	python="$$(scripts/find-python)" && \
		UV_TOOL_DIR="$(CURDIR)/.tools/tools" UV_TOOL_BIN_DIR="$(CURDIR)/.tools/bin" \
		$(UV) tool install --quiet --force --python "$$python" aws-sam-cli==$(SAM_VERSION) >&2
	touch $@

# --- build -----------------------------------------------------------------------------------------

# GOVERNANCE may name another file than last time, so this always compiles; the layer is built again
# only where the result is another.
.PHONY: always
$(POLICY): always $(VENV_READY)
	$(PYTHON) -m local.policy compile "$(GOVERNANCE)" $@.new >&2
	cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# One build folder serves both processors: the stamp says for which one it was filled last.
.aws-sam/ready-%: template.yaml layers/deps/requirements.txt $(wildcard layers/*/Makefile) \
		$(POLICY) $(STEWARD) $(SAM_READY)
	rm -f .aws-sam/ready-*
	python="$$(scripts/find-python)" && \
		PATH="$$(dirname "$$python"):$$PATH" PYTHON="$$python" UV="$(CURDIR)/$(UV)" PYTHONPATH= \
		PLATFORM=$(if $(filter arm64,$*),aarch64,$*)-manylinux2014 \
		$(SAM) build --parameter-overrides Arch=$* >&2
	touch $@
