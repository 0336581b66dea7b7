# One set of commands for people and for CI. `make` alone lists them.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SITE := $(VENV)/.site
# Real Ceph needs root. Root needs no sudo, and a container has none. What root runs leaves no file of
# root's in the checkout of another user.
KEPT := CI NO_INSTALL GRAFANA_HOME GRAFANA_URL GRAFANA_IMAGE CEPHQOS_LABS
ROOT = $(if $(filter-out 0,$(shell id -u)),sudo env PATH="$$PATH" PYTHONDONTWRITEBYTECODE=1 \
  PYTEST_ADDOPTS="-p no:cacheprovider" $(foreach name,$(KEPT),$(if $($(name)),$(name)="$($(name))")))

.DEFAULT_GOAL := help
.PHONY: help venv tools packages chart sbom release demo docs docs-serve test test-clock test-fast test-full test-rules check generate format give-back lock test-grafana test-grafana-types test-compose test-scale test-staged soak trial-proof fuzz alert-budget bench-exporter bench-rules truth study-small clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml requirements-dev.txt $(wildcard deploy/images/requirements-*.txt)
	@PYTHON="$(PYTHON)" deploy/bootstrap.sh venv "$(VENV)"
	@touch $@

venv: $(STAMP) ## make the Python environment in .venv, with the commands cephqos and cephqos-exporter

tools: $(STAMP) ## build Loki, the log collector, nfpm, helm, kubeconform from Go modules (6 minutes, once)
	@$(BIN)/python -m cephqos_stack.tools

packages: $(STAMP) ## build Debian packages and RPMs of exporter, top and log collector, in dist/ (needs Go)
	@$(BIN)/python deploy/packages/build.py

chart: $(STAMP) ## write the Helm chart as one file, with rules and dashboards, in dist/
	@$(BIN)/python deploy/helm/package.py

CYCLONEDX := build/sbom/bin/cyclonedx-py
$(CYCLONEDX): $(STAMP) deploy/requirements-sbom.txt
	@$(BIN)/python -m venv build/sbom
	@build/sbom/bin/pip install --quiet --no-deps --require-hashes -r deploy/requirements-sbom.txt
	@touch $@

sbom: $(STAMP) $(CYCLONEDX) ## write the bills of materials and the list of licences, in dist/ (needs Go)
	@$(BIN)/python deploy/sbom.py $(CYCLONEDX)

release: $(STAMP) $(SITE) $(CYCLONEDX) ## build all that a release consists of, in dist/release, twice, and compare (needs Go; TAG=vX.Y.Z OWNER=name)
	@$(BIN)/python -m cephqos_stack.tools nfpm cephqos-collector cyclonedx-gomod >/dev/null
	@$(BIN)/python deploy/release/everything.py --again $(if $(TAG),--tag $(TAG)) $(if $(OWNER),--owner $(OWNER)) $(CYCLONEDX)

demo: $(STAMP) ## start a real Ceph cluster under load and show it live until Ctrl-C (root)
	@deploy/bootstrap.sh system
	@exec $(ROOT) $(BIN)/cephqos demo

SYSTEM = deploy/bootstrap.sh system tmux curl openssl systemd-analyze chromium cc
# What real clusters are asked may fail by chance, so it is asked again. The output names it: a defect
# of the test, or ours, that is to be mended.
TWICE = --reruns 1 -raR
# A few tests take as long as hundreds of others: a worker that has no more takes over from the other.
SHARED = -n auto --dist worksteal
BESIDE = $(TWICE) -n 4 --dist loadfile --no-loadscope-reorder --durations=25

test: $(STAMP) ## run what guards every change, on real Ceph clusters too (root, 25 to 40 minutes)
	@$(SYSTEM)
	@# Built meanwhile; the second call waits for it, and says what failed.
	@$(ROOT) $(BIN)/cephqos lab trees >/dev/null 2>&1 &
	@# Two years ahead: a date that was recorded or written down must not be what a test rests on.
	$(BIN)/python -m tests.clock two-years $(BIN)/pytest tests/unit tests/contract $(SHARED)
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) $(BIN)/pytest tests/golden tests/promtool -m "not full" $(SHARED) --durations=5
	$(ROOT) $(BIN)/pytest tests/lab tests/stack -m "not alone and not full" $(BESIDE)
	$(ROOT) $(BIN)/pytest tests/lab tests/stack -m "alone and not full" $(TWICE) --durations=10

test-full: $(STAMP) ## run what make test leaves for the night: packages, logs, all releases (root, needs Go, about an hour)
	@$(SYSTEM)
	$(ROOT) $(BIN)/python -m cephqos_stack.tools
	$(ROOT) $(BIN)/python -m cephqos_stack.tools actionlint
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) $(BIN)/pytest tests/golden tests/promtool -m full -n auto
	$(ROOT) $(BIN)/pytest tests/lab tests/stack -m "full and not alone" $(BESIDE)
	$(ROOT) $(BIN)/pytest tests/lab tests/stack -m "full and alone" $(TWICE) --durations=10

test-fast: $(STAMP) ## run the tests that need nothing but Python (about two minutes)
	$(BIN)/pytest tests/unit tests/golden tests/contract -n auto

test-clock: $(STAMP) ## run the fast tests on other days, in other time zones, languages and orders (root, an hour; CLOCK='--only NAME')
	@deploy/bootstrap.sh system cc /usr/share/i18n/locales/de_DE /usr/share/zoneinfo/Asia/Kolkata
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) $(BIN)/python -m tests.clock $(CLOCK)

test-rules: $(STAMP) ## let promtool of Prometheus 2.53 and 3.5 evaluate the rules on made-up series (about 5 minutes)
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) $(BIN)/pytest tests/promtool -n auto

check: $(STAMP) ## check lint, format, types, generated files and the words of texts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/cephqos rules check
	$(BIN)/cephqos dashboards check
	PYTHONPATH=. $(BIN)/python -m tests.words

$(SITE): $(STAMP) deploy/requirements-docs.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r deploy/requirements-docs.txt
	@touch $@

docs: $(SITE) ## build the documentation site in build/site; a broken link or anchor fails
	$(BIN)/zensical build --clean --strict

docs-serve: $(SITE) ## show the documentation at http://localhost:8000 while it is written
	$(BIN)/zensical serve

generate: $(STAMP) ## renew what is made from sources: rules, dashboards, docs/reference
	$(BIN)/cephqos rules build --out alerts/rules --alertmanager alerts/alertmanager/alertmanager.yml --loki alerts/loki/fake/logs.yml
	$(BIN)/cephqos dashboards build --out dashboards/cephqos_dashboards
	PYTHONPATH=. $(BIN)/python -m tests.reference

format: $(STAMP) ## let ruff format and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

compile = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --python-version 3.11
# Each lock leaves to the ones that it names what they have.
beyond = awk 'FNR == NR {if (/==/) had[$$0]; next} /==/ {new = !($$0 in had)} new'
images = deploy/images/requirements
lock: $(STAMP) ## renew requirements-dev.txt and the requirements of our images from pyproject.toml
	$(BIN)/pip install --quiet --require-hashes -r deploy/requirements-lock.txt
	@mkdir -p build && cat requirements-dev.txt $(images)-*.txt | grep -v '^-r' >build/every.txt
	$(compile) --extra loadgen --extra report --extra completion --extra dashboards --group dev pyproject.toml -o build/every.txt
	$(compile) -c build/every.txt pyproject.toml -o $(images)-exporter.txt
	echo 'setuptools>=77' | $(compile) -c build/every.txt - -o $(images)-build.txt
	$(compile) -c build/every.txt --extra loadgen pyproject.toml -o build/lab.txt
	(echo '-r requirements-exporter.txt'; $(beyond) $(images)-exporter.txt build/lab.txt) >$(images)-lab.txt
	(printf -- '-r $(images)-%s.txt\n' lab build; $(beyond) <(cat $(images)-*.txt) build/every.txt) >requirements-dev.txt
	echo uv | $(compile) - -o deploy/requirements-lock.txt
	echo 'zensical==0.0.73' | $(compile) -c build/every.txt - -o deploy/requirements-docs.txt
	@# Without what checks a bill against its schema: 18 packages more.
	echo cyclonedx-bom | $(compile) --override <(echo 'cyclonedx-python-lib>=11') - -o deploy/requirements-sbom.txt
	@echo "then: make venv"

test-grafana: $(STAMP) ## open every dashboard in a real Grafana (GRAFANA_HOME, GRAFANA_URL or GRAFANA_IMAGE=...; root, Chromium, 10 minutes)
	@deploy/bootstrap.sh system
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) $(BIN)/python -m cephqos_stack.tools loki cephqos-collector
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.grafana.look

test-grafana-types: $(STAMP) ## check the dashboards against the types that Grafana publishes (needs npm, a minute)
	PYTHONPATH=. $(BIN)/python -m tests.grafana.types

test-compose: $(STAMP) ## run deploy/compose in a Docker engine of its own (root, 13 minutes; GRAFANA_HOME=... adds Grafana)
	@deploy/bootstrap.sh system
	$(ROOT) $(BIN)/python -m cephqos_stack.tools loki cephqos-collector
	$(ROOT) $(BIN)/pytest tests/compose -s

test-scale: $(STAMP) ## run deploy/scale beside one Prometheus: pairs of agents, Thanos, VictoriaMetrics (root, 10 minutes)
	@deploy/bootstrap.sh system
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.scale

MINUTES ?= 60
COUNT ?= 50
SEED ?=
give-back: $(STAMP) ## kill cephqos run at random moments, restore, compare the cluster with what it was (root, 20 minutes; COUNT=N SEED=N)
	@$(ROOT) $(BIN)/cephqos lab trees --release reef >/dev/null
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.give_back --count $(COUNT) $(if $(SEED),--seed $(SEED))

trial-proof: $(STAMP) ## stage trials on labs; what was made is not made again (root, 3 hours; PIECES="same counted-2" FOR=MINUTES)
	@$(ROOT) $(BIN)/cephqos lab trees >/dev/null
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.trial.labs $(PIECES) $(if $(FOR),--minutes $(FOR))

soak: $(STAMP) ## run the whole stack at 1 s scrapes while OSDs restart; watch memory, descriptors, gaps (root, an hour; MINUTES=N)
	@deploy/bootstrap.sh system
	@$(ROOT) $(BIN)/python -m cephqos_stack.tools loki cephqos-collector
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.soak --minutes $(MINUTES)

REPLIES ?= 1000000
fuzz: $(STAMP) ## feed the exporter a million mutated replies (REPLIES=N, SEED=N; half an hour)
	PYTHONPATH=. $(BIN)/python -m tests.fuzz.replies --replies $(REPLIES) $(if $(SEED),--seed $(SEED))

bench-exporter: $(STAMP) ## print what the exporter costs, and the ratio to each bar (root, 10 minutes)
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.bench.exporter

alert-budget: $(STAMP) ## print how many notifications a week simulated fleets send (10 minutes; docs/operate/noise.md)
	$(ROOT) $(BIN)/cephqos lab trees
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.bench.alert_budget

bench-rules: $(STAMP) ## print what evaluating all rules costs for 100, 300 and 1,000 OSDs (9 minutes)
	PYTHONPATH=. $(BIN)/python -m tests.bench.rules

test-staged: $(STAMP) ## run a dozen situations of make truth on one cluster (root, 6 minutes)
	$(ROOT) $(BIN)/pytest tests/stack/test_staged.py

# What stages nothing needs no root.
LOOKS = $(filter --list --table --help -h,$(TRUTH))
truth: $(STAMP) ## stage faults and healthy loads on real clusters; print what the alerts said of each (root, an hour)
	@$(if $(LOOKS),,deploy/bootstrap.sh system ip tc)
	$(if $(LOOKS),,$(BIN)/cephqos lab trees)
	@# In namespaces of its own: links can be slowed down there, and nothing can be downloaded.
	$(if $(LOOKS),,$(ROOT) unshare --net --mount sh -c 'ip link set lo up && exec "$$@"' - )env PYTHONPATH=. $(BIN)/python -m tests.truth $(TRUTH)

study-small: $(STAMP) ## run studies A and B on labs, into docs/internals/study-small; goes on where it ended (root, 10 hours; STUDY='--list', '--minutes 120')
	@$(if $(findstring --list,$(STUDY)),,deploy/bootstrap.sh system)
	$(if $(findstring --list,$(STUDY)),,$(ROOT) $(BIN)/cephqos lab trees --release reef)
	$(ROOT) env PYTHONPATH=. $(BIN)/python -m tests.study $(STUDY)

clean: ## remove the virtual environment and caches of this checkout
	@[ ! -e "$(VENV)" ] || [ -f "$(VENV)/pyvenv.cfg" ] || \
	  { echo "clean: VENV: found $(VENV), which is no virtual environment; nothing was removed" >&2; exit 2; }
	rm -rf "$(VENV)" .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
