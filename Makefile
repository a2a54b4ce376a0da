# Every target sets up .venv by itself; later runs start at once.
#
#   make demo          kill a leader under load from real clients; no acked record is lost
#                      (with Java, Spark ingests the topic meanwhile and audits it)
#   make test          the lint and pytest on the pure Python source, on all cores
#   make test-slow     the tests that take long and prove little more: long programs, all seeds, the fuzzer
#   make test-compiled pytest again, on the compiled build; .ci/run runs all three
#   make lint          ruff, mypy and import-linter alone; Biome and tsc, where there are Node and npm
#   make fuzz          made-up input for SECONDS (60; 0: no end); see tests/fuzz/README.md
#   make compat        kafka-python's own integration tests against kcluster
#   make compare       compare with Apache Kafka 4.4.0, or KAFKA=4.3.1, response by response; writes
#                      docs/explanation/differences.md
#   make certify       play the incidents on Apache Kafka and on simulated brokers; writes
#                      docs/reference/certified.md
#   make mutants       put known bugs into the core, one at a time, and search for each; writes
#                      docs/reference/mutants.md; goes on where it ended
#   make program-bugs  search programs with a known bug, and their repaired twins; writes
#                      docs/reference/program-bugs.md; goes on where it ended
#   make compiled      compile the hot modules to build/compiled; PYTHONPATH=build/compiled uses it
#   make wheels        build the sdist and the wheels into dist/, and try each in an empty environment
#   make tools         Kafka's command line tools against kcluster; needs Java and Maven
#   make programs      build the copiers of franz-go and kafkajs that the tests run; needs Go, Node and npm
#   make helpers       build the helpers for Java, Go and Node with their examples, which the tests run
#   make site          build the course that browsers play alone, one file: build/site/index.html; needs
#                      Node and npm
#   make docs          build the site of docs/ into build/docs; fails on a broken link or anchor
#   make reference     write the generated pages of docs/reference and the schemas of docs/schema
#   make bench         benchmark the compiled build and its peers; writes docs/reference/benchmarks.md
#   make bench-micro   benchmark the hot paths alone, in seconds
#   make renew         update all pins in constraints.txt to the newest versions
#   make clean         remove .venv, all caches, and everything compiled
#
# ARGS is passed to the program:       make demo ARGS="--help"    make test ARGS="-k fetch"
# -n0 runs the tests in one process:   make test ARGS="-n0 --pdb"
# BUILD=pure measures pure Python:     make bench BUILD=pure
# PYTHON chooses the interpreter:      make test PYTHON=python3.13

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow fuzz test-compiled can-compile jars programs helpers tools lint javascript certify compat compare compiled mutants program-bugs \
  site site-parts docs reference wheels bench bench-micro renew clean

CC ?= cc
VENV := .venv
COMPILED := build/compiled
# Tests of one xdist group share a worker (tests/conftest.py); groups and slow tests come first. More
# workers than cores: live tests and JVMs' starts wait for half of their time.
WORKERS = $(shell $(BIN)/python -c 'import os; print(2 * (os.cpu_count() or 1) + 1)')
# A worker that ends, as at faulthandler's timeout, ends the run: a new one would run the same test again.
PARALLEL = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --max-worker-restart=0
COMPILED_TESTS = tests/partition tests/broker tests/controller tests/protocol tests/network tests/faults \
  tests/runtime tests/operations tests/drivers tests/handle tests/invariants tests/evidence tests/checks \
  tests/property tests/fuzz tests/scenario/play tests/actions tests/foreign_clients tests/cli \
  tests/clients tests/web/api tests/test_build.py scenarios
KAFKA_LIBS := build/kafka-libs
KAFKA_CLIENTS := build/kafka-clients
CONNECTOR_JARS := build/connector-jars
ARCHIVES := build/archives
PROGRAMS := build/programs
SCHEMAS := conform exercise lesson run scenario topology
HELPERS := build/helpers
SITE_PARTS := build/course-site
JAVASCRIPT := build/javascript
TOOLS_TESTS := tests/compat/kafka_tools tests/compat/kafka_streams
BUILD ?= compiled
MEASURED = $(if $(filter pure,$(BUILD)),cluster,$(COMPILED)):.
BIN := $(VENV)/bin
ARGS ?=
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

help:
	@sed -n 's/^#   \(make .*\)/\1/p' Makefile

# --------------------------------------------------------------------------------- targets

# The demo ends with an audit on Spark. Spark is large, so it is installed only where there is Java.
demo: $(if $(shell command -v java),$(VENV)/.spark,$(VENV)/.clients)
	@$(BIN)/kcluster demo --spark $(ARGS)

# pytest's summary is the last line printed, here and below: CI reads it.  Beside the lint, one process
# compiles the tests; in a fresh clone each worker would.
test: jars site-parts $(VENV)/.dev
	@$(BIN)/python -m pytest --collect-only -n0 -qq >/dev/null 2>&1 & \
	  $(MAKE) --no-print-directory lint; code=$$?; wait; exit $$code
	@KCLUSTER_BUILD="pure Python" $(BIN)/python -m pytest -m "not slow" $(PARALLEL) $(ARGS)

# ARGS may select none of them: pytest's exit code 5.
test-slow: jars programs helpers $(VENV)/.dev
	@KCLUSTER_BUILD="pure Python" $(BIN)/python -m pytest -m slow $(PARALLEL) $(ARGS) \
	  || $(if $(strip $(ARGS)),[ $$? -eq 5 ],false)

# Prints why the C extension cannot be built, or nothing. pip uses the same compiler, from CC.
export CC
CANNOT_COMPILE = if ! command -v $(firstword $(CC)) >/dev/null 2>&1; then echo "no C compiler ($(CC))"; \
  elif ! [ -e "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; \
  then echo "no Python.h (on Debian or Ubuntu: python3-dev)"; fi

# Without a compiler that is said, and is no failure.
can-compile: $(VENV)/.dev
	@why=$$($(CANNOT_COMPILE)); [ -z "$$why" ] || echo "make: $$why here: the compiled half is not tested"

# The core's tests again, on the C extension. ARGS may select none of them: pytest's exit code 5.
test-compiled: can-compile
	@if [ -z "$$($(CANNOT_COMPILE))" ]; then \
	  $(MAKE) --no-print-directory compiled && { \
	  KCLUSTER_BUILD=compiled PYTHONPATH=$(COMPILED) $(BIN)/python -P -m pytest -o pythonpath="$(COMPILED) ." \
	    -o "addopts=--strict-markers --strict-config --import-mode=importlib" -q \
	    -m "not pure_python" --ignore tests/cli/pipeline $(PARALLEL) $(COMPILED_TESTS) $(ARGS) \
	    || $(if $(strip $(ARGS)),[ $$? -eq 5 ],false); \
	}; fi

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@mkdir -p build; $(BIN)/lint-imports --no-logo --cache-dir build/imports > build/imports.txt || \
	  { cat build/imports.txt; exit 1; }
	@$(MAKE) --no-print-directory javascript

# With Node and npm: Biome checks all JavaScript, tsc the types of the page's. No user needs them.
javascript:
	@if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then \
	  echo "make: no Node or no npm here: the JavaScript is not checked"; \
	elif ! $(MAKE) --no-print-directory --silent $(JAVASCRIPT)/.done; then \
	  echo "make: Biome and TypeScript could not be fetched: the JavaScript is not checked"; \
	else \
	  $(JAVASCRIPT)/node_modules/.bin/biome check --config-path=tools/javascript --error-on-warnings \
	    --log-level=error cluster helpers tests tools/course_site && \
	  $(JAVASCRIPT)/node_modules/.bin/tsc --project tools/javascript; fi

$(JAVASCRIPT)/.done: tools/javascript/package.json
	@echo "Fetching Biome and TypeScript (40 MB); this once." >&2
	@mkdir -p $(@D) && cp $< $(@D)
	@cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts
	@touch $@

SECONDS ?= 60
fuzz: $(VENV)/.dev
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

compat: $(VENV)/.dev
	@$(BIN)/python tests/compat/kafka_python/run.py $(ARGS)

# ARGS: --only 'acks*', --budget MINUTES, --random 200, --jobs 6, --page
certify: $(VENV)/.dev
	@$(BIN)/python -m compare.certified $(ARGS)

# The text of a compiled module cannot be replaced: always on the pure Python source.
mutants: $(VENV)/.dev
	@$(BIN)/python -m tools.mutants --page docs/reference/mutants.md $(ARGS)

# ARGS: names of programs, --runs 50, --again, --seconds 200
program-bugs: $(VENV)/.dev
	@$(BIN)/python -m tools.program_bugs --page docs/reference/program-bugs.md $(ARGS)

compare: $(VENV)/.dev
	@$(BIN)/python -m compare $(if $(KAFKA),--kafka $(KAFKA)) $(ARGS)

tools: $(VENV)/.dev $(KAFKA_LIBS) $(KAFKA_CLIENTS)
	@KCLUSTER_LONG_PROGRAMS=yes $(BIN)/python -m pytest -o faulthandler_timeout=1000 $(TOOLS_TESTS) $(ARGS)

# With Java, pytest also tests Kafka's tools and Spark's connector. Without Java, or without the jars,
# these tests are skipped with a message, and that is no failure.
jars: $(VENV)/.dev
	@if ! command -v java >/dev/null 2>&1 || ! command -v mvn >/dev/null 2>&1; then \
	  echo "make: no Java or no Maven here: Kafka's own tools and connector are not tried"; \
	else \
	  $(MAKE) --no-print-directory $(ARCHIVES)/kafka-tools.jsa || \
	    echo "make: the jars of Kafka's tools could not be fetched: they are not tried"; \
	  $(MAKE) --no-print-directory $(ARCHIVES)/kafka-programs.jsa || \
	    echo "make: the jars of Kafka's clients could not be fetched: they are not tried"; \
	  $(MAKE) --no-print-directory $(ARCHIVES)/spark.jsa || \
	    echo "make: the jars of Spark's Kafka connector could not be fetched: it is not tried"; fi

$(KAFKA_LIBS): tests/compat/kafka_tools/pom.xml
	@echo "Fetching Kafka's tools (55 MB); this once." >&2
	@rm -rf $@
	@mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@
	@touch $@

$(KAFKA_CLIENTS): tests/compat/kafka_clients/pom.xml
	@echo "Fetching Kafka's newest clients (20 MB); this once." >&2
	@rm -rf $@
	@mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@
	@touch $@

$(CONNECTOR_JARS): tests/pipeline/connector/pom.xml
	@echo "Fetching Spark's Kafka connector (10 MB); this once." >&2
	@rm -rf $@
	@mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@
	@touch $@

$(ARCHIVES)/kafka-tools.jsa: $(KAFKA_LIBS) tools/class_archives.py
	@echo "Archiving the classes of Kafka's tools; this once." >&2
	@$(BIN)/python tools/class_archives.py kafka-tools $< $@ || echo "make: no archive: they start slower"

$(ARCHIVES)/kafka-programs.jsa: $(KAFKA_CLIENTS) $(KAFKA_LIBS) tools/class_archives.py
	@echo "Archiving the classes of Kafka's test programs; this once." >&2
	@$(BIN)/python tools/class_archives.py kafka-programs $(KAFKA_CLIENTS):$(KAFKA_LIBS) $@ || \
	  echo "make: no archive: they start slower"

$(ARCHIVES)/spark.jsa: $(CONNECTOR_JARS) tools/class_archives.py
	@echo "Archiving the classes of Spark; this once." >&2
	@$(BIN)/python tools/class_archives.py spark $< $@ || echo "make: no archive: it starts slower"

# With Go, or Node and npm, pytest also tests a program of franz-go, or of kafkajs; else as with jars.
programs:
	@if ! command -v go >/dev/null 2>&1; then echo "make: no Go here: franz-go is not tried"; \
	  else $(MAKE) --no-print-directory $(PROGRAMS)/franz-go-copier || \
	    echo "make: franz-go's copier could not be built: it is not tried"; fi
	@if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then \
	  echo "make: no Node or no npm here: kafkajs is not tried"; \
	  else $(MAKE) --no-print-directory $(PROGRAMS)/copier.js || \
	    echo "make: kafkajs could not be fetched: it is not tried"; fi

$(PROGRAMS)/franz-go-copier: $(wildcard tests/compat/programs/franz_go/*)
	@echo "Building franz-go's copier; this once." >&2
	@go build -C $(<D) -o $(CURDIR)/$@ .

$(PROGRAMS)/copier.js: $(wildcard tests/compat/programs/kafkajs/*)
	@mkdir -p $(@D) && cp $(<D)/package.json $(<D)/copier.js $(@D)
	@cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts
	@touch $@

# With Java and Maven, Go, or Node and npm, pytest also tests the helper in this language; else as above.
helpers:
	@if ! command -v java >/dev/null 2>&1 || ! command -v mvn >/dev/null 2>&1; then \
	  echo "make: no Java or no Maven here: the JUnit 5 extension is not tried"; \
	  else $(MAKE) --no-print-directory $(HELPERS)/java/.done || \
	    echo "make: the JUnit 5 extension could not be built: it is not tried"; fi
	@if ! command -v go >/dev/null 2>&1; then echo "make: no Go here: the Go helper is not tried"; \
	  else $(MAKE) --no-print-directory $(HELPERS)/example.test || \
	    echo "make: the Go helper could not be built: it is not tried"; fi
	@if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then \
	  echo "make: no Node or no npm here: the Node helper is not tried"; \
	  else $(MAKE) --no-print-directory $(HELPERS)/node/.done || \
	    echo "make: kafkajs could not be fetched: the Node helper is not tried"; fi

# As users do it: the extension is installed into an empty repository, and a project outside of it depends
# on it there. The launcher runs the tests without Maven; it brings JUnit's own classes.
JUNIT_LAUNCHER := org.junit.platform:junit-platform-console-standalone:1.13.4
EMPTY_REPOSITORY = -Dmaven.repo.local=$(CURDIR)/$(HELPERS)/java/repository
$(HELPERS)/java/.done: $(shell find helpers/java -name '*.java' -o -name pom.xml)
	@echo "Building the JUnit 5 extension and its example; this once." >&2
	@rm -rf $(@D) && mkdir -p $(HELPERS) && cp -r helpers/java $(@D)
	@cd $(@D)/junit5 && mvn -q -B $(EMPTY_REPOSITORY) install
	@cd $(@D)/example && mvn -q -B $(EMPTY_REPOSITORY) test-compile dependency:copy-dependencies \
	  -DoutputDirectory=$(CURDIR)/$(@D)/libs \
	  -DexcludeGroupIds=org.junit.jupiter,org.junit.platform,org.opentest4j,org.apiguardian
	@cd $(@D)/example && mvn -q -B $(EMPTY_REPOSITORY) -N dependency:copy -Dartifact=$(JUNIT_LAUNCHER) \
	  -DoutputDirectory=$(CURDIR)/$(@D)/libs
	@rm -rf $(@D)/repository
	@touch $@

$(HELPERS)/example.test: $(wildcard helpers/go/* helpers/go/example/*)
	@echo "Building the Go helper's example; this once." >&2
	@go test -C helpers/go/example -c -o $(CURDIR)/$@ .

$(HELPERS)/node/.done: $(wildcard helpers/node/*.js* helpers/node/example/*.js*)
	@rm -rf $(@D) && mkdir -p $(@D)/example && cp helpers/node/*.js* $(@D) && cp helpers/node/example/*.js* $(@D)/example
	@cd $(@D)/example && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts
	@touch $@

compiled: $(COMPILED)/.done

site: $(VENV)/.dev $(SITE_PARTS)/.done
	@$(BIN)/python tools/course_site/build.py $(SITE_PARTS) build/site

# With Node and npm, pytest also opens the course's site; else as with jars.
site-parts: $(VENV)/.dev
	@if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then \
	  echo "make: no Node or no npm here: the course's site is not tried"; \
	  else $(MAKE) --no-print-directory $(SITE_PARTS)/.done || \
	    echo "make: Python for browsers could not be fetched: the course's site is not tried"; fi

# The wheels have the versions that constraints.txt pins, for the Python and the platform of this Pyodide.
$(SITE_PARTS)/.done: tools/course_site/package.json constraints.txt
	@echo "Fetching Python for browsers (8 MB); this once." >&2
	@rm -rf $(@D) && mkdir -p $(@D) && cp $< $(@D)
	@cd $(@D) && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check -c constraints.txt --dest $(@D) \
	  --no-deps --only-binary :all: --python-version 3.14 --platform pyemscripten_2026_0_wasm32 msgspec cramjam
	@touch $@

docs: $(VENV)/.docs
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --write-all --jobs auto docs build/docs $(ARGS)
	@echo "build/docs/index.html"

reference: $(VENV)/.dev
	@$(BIN)/python tools/reference_pages.py
	@$(BIN)/python tools/course_pages.py
	@$(BIN)/kcluster scenario help --markdown > docs/reference/scenario-keys.md
	@for file in $(SCHEMAS); do \
	  $(BIN)/kcluster schema $$file > docs/schema/$$file.schema.json; done

# Compiled wheels for the CPythons at hand: ARGS="--python python3.12" chooses, ARGS=--no-compiled skips
# them.
wheels: $(VENV)/.dev
	@CFLAGS="$(CFLAGS) $(FASTER_HERE)" $(BIN)/python tools/build_wheels.py $(ARGS)

bench: $(VENV)/.dev $(if $(filter pure,$(BUILD)),,$(COMPILED)/.done)
	@PYTHONPATH=$(MEASURED) $(BIN)/python -P -m bench $(ARGS)

bench-micro: $(VENV)/.dev $(if $(filter pure,$(BUILD)),,$(COMPILED)/.done)
	@PYTHONPATH=$(MEASURED) $(BIN)/python -P -m bench.micro $(ARGS)

# ---------------------------------------------------------------------------------- set-up

# The first interpreter that runs and is new enough. If PYTHON is set, only that one is tried.
FIND_PYTHON = for python in $(or $(PYTHON),python3.11 python3 python3.12 python3.13 python3.14 python); do \
	  if "$$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "make: found no Python 3.11 or newer with its venv module (looked for:" \
	    "$(or $(PYTHON),python3.11, python3, python3.12, python3.13, python3.14, python))." >&2; \
	  echo "make: install one (on Debian or Ubuntu: python3.11 and python3.11-venv)," \
	    "or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi

$(BIN)/python:
	@$(FIND_PYTHON); \
	echo "Setting up $(VENV) with $$($$found -V); this once." >&2; \
	"$$found" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "make: $$found -m venv failed; on Debian or Ubuntu install python3-venv" >&2; exit 1; }

# .dev includes the packages of .clients and .spark, so it marks these as done too.
$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $(VENV)/.clients $(VENV)/.spark $@

$(VENV)/.spark: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Fetching Spark and what plots need (a gigabyte); this once." >&2
	@$(PIP_INSTALL) -e '.[clients,spark]'
	@touch $(VENV)/.clients $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.clients: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP_INSTALL) -e '.[clients]'
	@touch $@

SOURCES := pyproject.toml constraints.txt $(shell find cluster scenarios -name '*.py' -o -name '*.pyi' \
  -o -name '*.txt' -o -name '*.yaml')

# The extension is one large C file: with -flto gcc optimises it on all cores. Functions that only the
# extension calls are hidden, so that they are called directly and may be inlined.
FASTER := -flto=auto -fvisibility=hidden
FASTER_HERE = $(shell echo 'int main(void) { return 0; }' | \
  $(CC) $(FASTER) -x c -o /dev/null - 2>/dev/null && echo $(FASTER))

# Built from a copy: the hook leaves its output beside the sources, where it would hide later changes.
# Without isolation: the build tools are in .venv already.
$(COMPILED)/.done: $(SOURCES) | $(VENV)/.dev
	@echo "Compiling the hot modules; a minute, once for each change of the code." >&2
	@rm -rf $(COMPILED) build/source build/wheel
	@mkdir -p build/source
	@cp -r cluster scenarios pyproject.toml README.md LICENSE build/source/
	@find build/source -name '*.so' -delete
	@CFLAGS="$(CFLAGS) $(FASTER_HERE)" HATCH_BUILD_HOOK_ENABLE_MYPYC=1 $(BIN)/python -m pip wheel --quiet \
	  --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/wheel build/source
	@$(BIN)/python -m zipfile -e build/wheel/*.whl $(COMPILED)
	@rm -rf build/source
	@touch $@

renew: $(BIN)/python
	@rm -rf $(VENV)-renew
	@$(BIN)/python -m venv $(VENV)-renew
	@$(VENV)-renew/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e '.[dev,docs,plots,spark]'
	@sed -n '/^#/p' constraints.txt > $(VENV)-renew/constraints.txt
	@$(VENV)-renew/bin/python -m pip freeze --all --exclude pip --exclude-editable >> $(VENV)-renew/constraints.txt
	@cp $(VENV)-renew/constraints.txt constraints.txt
	@rm -rf $(VENV)-renew
	@git --no-pager diff --stat constraints.txt

clean:
	rm -rf $(VENV) $(VENV)-renew build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f *__mypyc.*.so; find cluster -name '*.so' -delete
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
