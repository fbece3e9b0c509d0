# What can be asked of this repository: `make help`. Each target does its own set-up first (tools/setup).

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Debian's own, not the first one in PATH: the zipapp's is /usr/bin/python3, too.
PYTHON := $(firstword $(wildcard /usr/bin/python3) python3)
DESTDIR :=
# More arguments for pytest: make check PYTEST="-x -k keyfile"
PYTEST :=

# make fuzz: seconds for all targets together, and which of them (tests/fuzz/targets); none: all.
FUZZ_SECONDS := 600
TARGET :=

# Of the tests, those that neither take long nor boot whole machines.
COMMON := not long and not peers and not vm and not vm_full
# What pytest ends with where it had nothing to run, as with -k.
NONE_RUN := 5
SCENARIO :=

# Runs what follows with what the set-up has made in its environment: $$VENV, $$NMSTATECTL, $$GUEST_trixie.
WITH := set -a && . build/paths.env && set +a &&

##@ To work on it

.PHONY: help
help: ## this page
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { print "\n" substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## all that the targets below need, once; what is slow to make is kept in ~/.cache/homeport
	@tools/setup

# Without what only the tests boot, `make demo` comes sooner.
.PHONY: setup-tests
setup-tests: ## the same for the boots below, which need a Debian 12, and a Debian 13 with a kernel, too
	@tools/setup venv nmstatectl guest-trixie guest-bookworm vm-trixie ignition

.PHONY: check
check: ## static checks and unit tests: seconds
	@tools/setup venv
	$(WITH) "$$VENV/bin/python" -m pytest tests $(PYTEST)

# The whole machines not at the same time as the rest: without KVM they are one long computation, beside which
# containers miss the times that they are to keep. Both, also where the first one fails.
.PHONY: test
test: setup-tests ## everything: static checks, unit tests, boots
	@$(MAKE) --no-print-directory --keep-going test-common test-vm

.PHONY: test-common
test-common: setup-tests ## the same without the boots in QEMU
	@$(WITH) "$$VENV/bin/python" -m pytest -m "$(COMMON)" $(PYTEST) || [ $$? = $(NONE_RUN) ]

.PHONY: test-container
test-container: setup-tests ## the boots in containers alone: a real systemd, NetworkManager and nmstatectl
	$(WITH) "$$VENV/bin/python" -m pytest vm-tests -m "$(COMMON)" $(PYTEST)

# What one of the two processes does that boot whole machines: an emulated one has one processor.
HALF := vm-tests/test_81_vm_platforms.py vm-tests/test_82_vm_tpm.py vm-tests/test_85_vm_full.py

.PHONY: test-vm
test-vm: setup-tests ## the boots in QEMU alone: firmware, TPM, initramfs; ten minutes without KVM
	@$(WITH) tools/side-by-side build/vm-tests.log \
	  "$$VENV/bin/python" -m pytest -m vm $(PYTEST) $(HALF) -- \
	  "$$VENV/bin/python" -m pytest -m vm $(PYTEST) vm-tests $(HALF:%=--ignore=%)

.PHONY: test-vm-full
test-vm-full: ## the same with the rest of the matrix: other suites, root on iSCSI, power cuts, ...; three quarters of an hour
	@tools/setup venv nmstatectl guest-trixie vm-trixie vm-bookworm vm-forky netroot-trixie metal-trixie
	@$(WITH) tools/side-by-side build/vm-tests.log \
	  "$$VENV/bin/python" -m pytest -m "vm or vm_full" --durations=0 $(PYTEST) $(HALF) -- \
	  "$$VENV/bin/python" -m pytest -m "vm or vm_full" --durations=0 $(PYTEST) vm-tests $(HALF:%=--ignore=%)

.PHONY: vm-shell
vm-shell: setup-tests ## SCENARIO=name: one of these boots, and then a root shell in its machine
	$(WITH) "$$VENV/bin/python" -m pytest vm-tests -m "vm or vm_full" -k "$(SCENARIO)" --log-in $(PYTEST)

.PHONY: test-container-full
test-container-full: setup-tests ## the same with the long ones: stopped at every point of a boot, ...; half an hour
	$(WITH) "$$VENV/bin/python" -m pytest vm-tests -m "not peers and not vm and not vm_full" $(PYTEST)

# What others wrote and we compare with is not needed for anything else.
.PHONY: setup-peers
setup-peers: ## the same for what is compared with: Afterburn, nm-cloud-setup; a quarter of an hour
	@tools/setup venv nmstatectl guest-trixie peer-afterburn peer-nm-cloud-setup

.PHONY: test-peers
test-peers: setup-peers ## beside the released Afterburn and nm-cloud-setup: every difference is one of docs/peers.md
	$(WITH) "$$VENV/bin/python" -m pytest vm-tests -m peers $(PYTEST)

.PHONY: fuzz
fuzz: ## [FUZZ_SECONDS=600] [TARGET=documents] the parsers on hostile input; a finding becomes a case of make check
	@tools/setup fuzz
	$(WITH) PYTHONPATH=agent nice -n 19 "$$FUZZ/bin/python" tests/fuzz/fuzz.py $(FUZZ_SECONDS) $(TARGET)

.PHONY: bench
bench: setup ## the figures of the README's table, as build/bench.json too; beside the peers where those are made
	@tools/setup vm-trixie
	$(WITH) "$$VENV/bin/python" tools/bench.py
	@$(WITH) if [ -n "$$PEER_afterburn" ] && [ -n "$$PEER_nm_cloud_setup" ]; then \
	  "$$VENV/bin/python" tools/bench_peers.py; else \
	  echo "time and memory beside Afterburn and nm-cloud-setup: make bench-peers (makes both, a quarter of an hour)"; fi

.PHONY: bench-peers
bench-peers: setup-peers ## time and memory beside them, for docs/peers.md; also build/bench-peers.json
	$(WITH) "$$VENV/bin/python" tools/bench_peers.py

.PHONY: bench-server
bench-server: ## 10 000 simulated agents ask homeport-server at the same time; also build/bench-server.json
	@tools/setup venv
	$(WITH) "$$VENV/bin/python" tools/bench_server.py

##@ To see it

.PHONY: demo
demo: setup ## a machine registers by TPM for an address of a pool; boots without server, in recovery, in a reset
	@$(WITH) "$$VENV/bin/python" vm-tests/demo.py

##@ To use it

.PHONY: zipapp
zipapp: ## build/homeport.pyz, the agent in one file: the same byte for byte wherever it is built
	$(PYTHON) agent/mkzipapp.py build/homeport.pyz

# Needs Python 3.11, make and systemctl, nothing of the set-up. DESTDIR is the root of another tree, or empty: this
# machine. Nothing in /etc/homeport is touched.
ROOT := "$(DESTDIR)"
LIB := $(ROOT)/usr/lib
MAN := $(ROOT)/usr/share/man
# The installed zipapp gets bytecode of that root's own Python, where that can be run; the sources stay beside it, for
# the day when the root gets another Python.
BYTECODE = chroot "$(or $(DESTDIR),/)" /usr/bin/python3 -I /usr/share/homeport/mkzipapp.py \
  --add-bytecode /usr/lib/homeport/homeport.pyz
UNITS := homeport.service homeport-refresh.service homeport-refresh.timer homeport-attributes.service \
  homeport-check-in.service homeport-hostname.service
# Of the initramfs. Not enabled here: whatever makes the initramfs does that in there.
INITRD_UNITS := homeport-prepare.service homeport-initrd.service homeport-handover.service homeport-tidy.service
DRACUT := $(LIB)/dracut/modules.d/50homeport

.PHONY: install
install: install-agent install-dracut ## [DESTDIR=/some/root] a root tree whose next boot is homeport's
	$(BYTECODE) || echo "(without bytecode: this root's Python does not run here; homeport starts a little slower)"
	systemctl --root="$(or $(DESTDIR),/)" preset $(UNITS)
ifeq ($(DESTDIR),)
	if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif

# Each of the next ones is what a package holds (packages/packages.toml): files, and nothing that depends on the root.
.PHONY: install-agent
install-agent: zipapp ## [DESTDIR=] of these, the files of the agent; nothing is enabled
	umask 022 && mkdir -p $(ROOT)/usr/bin $(LIB)/homeport $(LIB)/tmpfiles.d $(ROOT)/usr/share/homeport \
	  $(LIB)/systemd/system/NetworkManager-wait-online.service.d $(LIB)/systemd/system-preset \
	  $(LIB)/NetworkManager/conf.d $(LIB)/NetworkManager/system-connections $(ROOT)/var/lib \
	  $(LIB)/NetworkManager/dispatcher.d/pre-up.d $(LIB)/udev/rules.d \
	  $(MAN)/man5 $(MAN)/man8
	install -m 755 build/homeport.pyz $(LIB)/homeport/homeport.pyz
	install -m 755 agent/mkzipapp.py $(ROOT)/usr/share/homeport/
	ln -sfn ../lib/homeport/homeport.pyz $(ROOT)/usr/bin/homeport
	$(PYTHON) tools/default-settings.py > build/homeport.conf
	install -m 644 build/homeport.conf $(LIB)/homeport/homeport.conf
	install -m 644 $(UNITS:%=systemd/%) $(LIB)/systemd/system/
	install -m 755 systemd/90-homeport $(LIB)/NetworkManager/dispatcher.d/
	ln -sfn ../90-homeport $(LIB)/NetworkManager/dispatcher.d/pre-up.d/90-homeport
	install -m 644 systemd/85-homeport.rules $(LIB)/udev/rules.d/
	install -m 644 systemd/wait-online.conf $(LIB)/systemd/system/NetworkManager-wait-online.service.d/50-homeport.conf
	install -m 644 systemd/80-homeport.preset $(LIB)/systemd/system-preset/80-homeport.preset
	install -m 644 systemd/tmpfiles.conf $(LIB)/tmpfiles.d/homeport.conf
	install -m 644 systemd/networkmanager.conf $(LIB)/NetworkManager/conf.d/50-homeport.conf
	install -m 600 systemd/homeport-bootstrap.nmconnection $(LIB)/NetworkManager/system-connections/
	install -d -m 700 $(ROOT)/var/lib/homeport
	install -m 644 docs/homeport.conf.5 $(MAN)/man5/
	install -m 644 docs/homeport.8 docs/homeport.service.8 $(MAN)/man8/

.PHONY: install-dracut
install-dracut: ## [DESTDIR=] of these, the files for an initramfs; no initramfs changes by it
	umask 022 && mkdir -p $(DRACUT) $(LIB)/dracut/dracut.conf.d/homeport \
	  $(LIB)/systemd/system/nm-wait-online-initrd.service.d \
	  $(LIB)/systemd/system/NetworkManager-wait-online-initrd.service.d
	install -m 644 $(INITRD_UNITS:%=systemd/%) $(LIB)/systemd/system/
	install -m 644 systemd/initrd-wait-online-old.conf \
	  $(LIB)/systemd/system/nm-wait-online-initrd.service.d/50-homeport.conf
	install -m 644 systemd/initrd-wait-online.conf \
	  $(LIB)/systemd/system/NetworkManager-wait-online-initrd.service.d/50-homeport.conf
	install -m 755 $(addprefix dracut/50homeport/,module-setup.sh python-deps.py launcher.sh) $(DRACUT)/
	install -m 644 dracut/homeport.conf $(LIB)/dracut/dracut.conf.d/homeport/homeport.conf

.PHONY: deb
deb: ## build/packages/*.deb: the agent, its module for dracut, the server
	@command -v dpkg-deb > /dev/null || tools/setup venv
	$(PYTHON) packages/build.py deb build/packages

.PHONY: rpm
rpm: ## build/packages/*.rpm: the same for Fedora, openSUSE and their kin; can be made on a Debian
	@command -v rpmbuild > /dev/null || tools/setup venv
	$(PYTHON) packages/build.py rpm build/packages

.PHONY: install-ignition
install-ignition: ## [DESTDIR=/some/root] fragments that switch homeport on by platform, for an image with Ignition
	$(PYTHON) tools/ignition-fragments.py $(LIB)/ignition/base.platform.d

# The server's programs and units; what depends on the root comes after it. Its libraries are the distribution's, so that
# they get the distribution's updates: python3-aiohttp (3.11), -sqlalchemy (2.0), -cryptography (43), -yaml.
.PHONY: install-server
install-server: install-server-files ## [DESTDIR=] homeport-server and its unit; nothing is enabled
	$(SERVER_BYTECODE) || echo "(without bytecode: this root's Python does not run here)"
	systemd-sysusers --root="$(or $(DESTDIR),/)" homeport-server.conf
	systemd-tmpfiles --root="$(or $(DESTDIR),/)" --create homeport-server.conf
ifeq ($(DESTDIR),)
	if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif

# SERVER_PYTHON: an interpreter with those libraries, where the distribution's own are older (docs/pool.md).
SERVER_PYTHON :=
SERVER_BYTECODE = chroot "$(or $(DESTDIR),/)" $(or $(SERVER_PYTHON),/usr/bin/python3) -I - \
  --add-bytecode /usr/lib/homeport-server/homeport-server.pyz < agent/mkzipapp.py

.PHONY: install-server-files
install-server-files: ## [DESTDIR=] of these, the files
	$(PYTHON) agent/mkzipapp.py --server build/homeport-server.pyz
	umask 022 && mkdir -p $(ROOT)/usr/bin $(LIB)/homeport-server $(LIB)/systemd/system $(LIB)/sysusers.d \
	  $(LIB)/tmpfiles.d $(MAN)/man8
	install -m 755 build/homeport-server.pyz $(LIB)/homeport-server/homeport-server.pyz
ifneq ($(SERVER_PYTHON),)
	sed -i '1s|.*|#!$(SERVER_PYTHON) -I|' $(LIB)/homeport-server/homeport-server.pyz
endif
	ln -sfn ../lib/homeport-server/homeport-server.pyz $(ROOT)/usr/bin/homeport-server
	install -m 644 systemd/homeport-server.service $(LIB)/systemd/system/
	install -m 644 systemd/homeport-server.sysusers $(LIB)/sysusers.d/homeport-server.conf
	install -m 644 systemd/homeport-server.tmpfiles $(LIB)/tmpfiles.d/homeport-server.conf
	install -m 644 docs/homeport-server.8 $(MAN)/man8/

##@ To tidy up

.PHONY: clean
clean: ## what was built in this tree; not what the set-up keeps for all of them
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find agent server tests vm-tests tools -name __pycache__ -prune -exec rm -rf {} +
