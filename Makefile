# lull: the only build description of the C part.
#
#   make            build/lull and build/liblull-agent.so
#   make setup      install what is missing (apt), or print the one command that does
#   make demo       record the example before and after its fix and show what changed
#   make test       all tests; T=cudart those that are named so (make test-list), also make unit, golden, e2e, ...
#   make check      what the house style promises: layers, sizes, manual pages, headers, lint
#   make lint       clang-tidy and cppcheck, on what changed since they last ran
#   make screenshots  the pictures of the README, and build/screenshots: the page on twelve recordings, and its panels
#   make gpu        the checks and benchmarks that need a GPU
#   make bench      what things cost, beside what they may cost (FULL=1: 100 M events; RECORD=1: keep it)
#   make format     whitespace of the C sources
#   make install    into PREFIX (default /usr/local), below DESTDIR
#   make dist       releases for aarch64 and x86_64: tarballs, wheels, Debian packages
#
# V=1 shows commands, DEBUG=1 builds without optimisation, SAN=1 with ASan and UBSan, TSAN=1 with TSan.

VERSION := $(shell cat VERSION)
comma := ,
CC ?= gcc
PREFIX ?= /usr/local
AGENT_DIR ?= $(PREFIX)/lib/lull
MAN_DIR ?= $(PREFIX)/share/man

BUILD ?= build$(if $(SAN),-san)$(if $(TSAN),-tsan)$(if $(DEBUG),-debug)
Q := $(if $(V),,@)
# What may be done at the same time, where nobody measures time: compiling, linting, unit tests.
JOBS ?= $(shell nproc)

# The kinds of tests, each also a goal of its own (test/suite.py says what they are).
KINDS := unit golden property e2e san browser gpu-sim tsan fuzz check foreign

# Whoever tests gets what continuous integration gets: warnings are errors. STRICT= keeps them warnings.
STRICT ?= $(if $(CI)$(filter test $(KINDS),$(MAKECMDGOALS)),1)
export STRICT
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(if $(STRICT),-Werror)
OPTIM := $(if $(DEBUG),-O0,$(if $(SAN)$(TSAN),-O1,-O2))
ASAN_FLAGS := -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-DLULL_IO_FAULTS
SANFLAGS := $(if $(SAN),$(ASAN_FLAGS))$(if $(TSAN),-fsanitize=thread)
# Tests let calls of the system fail; sanitized builds are made for them.
FAULTS := $(if $(filter build-aarch64 build-x86_64,$(BUILD)),-DLULL_IO_FAULTS)
# Lines are enough where only tests run: with variables, compiling takes a sixth longer.
DEBUG_INFO := $(if $(SAN)$(FAULTS),-g1,-g)
# No contraction: a * b + c in one step has other last bits, and not every machine does it.
# Position-independent, hidden symbols: the same objects make the command and the library of the reader.
PIC := -fPIC -fvisibility=hidden
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE $(DEBUG_INFO) $(OPTIM) $(WARN) $(SANFLAGS) $(FAULTS) $(PIC) -ffp-contract=off -iquote src -DLULL_VERSION='"$(VERSION)"' $(CFLAGS)

# The command: everything but the agent. What is only in the library of the reader is in src/api/.
LULL_SRC := $(filter-out src/agent/% src/mend/%,$(wildcard src/*.c src/*/*.c src/*/*/*.c))
LULL_OBJ := $(LULL_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/pages.o $(BUILD)/gen/assets.o
LIB_OBJ := $(filter-out $(BUILD)/src/main.o,$(LULL_OBJ))
# All of it but main(), for tests and benchmarks: each links only what it uses.
LIB := $(BUILD)/liblull.a
# Nothing but the archive of libmicrohttpd asks for what a release has instead of TLS: it would come too late.
LINK_LIB = $(if $(STATIC),$(BUILD)/src/web/no_tls.o) $(LIB)
# Libraries of the command. A release (STATIC=1) links their archives and what those need in turn, so that it
# depends on glibc only. libsupc++.a holds the C++ demangler, which needs nothing but libc.
LIBS := -ldw -lelf -lzstd -lsqlite3 -lz -lmicrohttpd
LIBS_OF_LIBS := -llzma -lbz2
# Those of the library of the reader, which records nothing and serves nothing.
READ_LIBS := -lzstd -lsqlite3 -lz
link_libs = $(if $(STATIC),-Wl$(comma)-Bstatic $1 -Wl$(comma)-Bdynamic,$1)
LULL_LIBS := $(call link_libs,$(LIBS) $(if $(STATIC),$(LIBS_OF_LIBS))) -l:libsupc++.a -ldl -lpthread -lm

# Debian packages: to build, to test besides, and for releases the other architecture's compiler and archives.
PACKAGES := gcc g++ make libzstd-dev zlib1g-dev libdw-dev libelf-dev libsqlite3-dev libmicrohttpd-dev esbuild
# Node and npm may have come from elsewhere: only where they are missing are they Debian's.
TEST_PACKAGES = curl libcmocka-dev libbz2-dev patch musl-tools python3 python3-pip python3-torch python3-uvicorn python3-fastapi python3-flask python3-aiohttp python3-hypercorn python3-grpcio python3-pandas zsh fish sqlite3 util-linux-extra clang-tidy clang-format cppcheck openmpi-bin libopenmpi-dev mpich libmpich-dev \
	chromium fonts-inter fonts-jetbrains-mono node-typescript protobuf-compiler $(if $(shell command -v node),,nodejs) $(if $(shell command -v npm),,npm)
NATIVE := $(shell uname -m)
MACHINE := $(shell $(CC) -dumpmachine)
FOREIGN := $(if $(filter x86_64,$(NATIVE)),arm64,amd64)
FOREIGN_GNU := $(if $(filter x86_64,$(NATIVE)),aarch64,x86-64)
# The other architecture is tested with its compiler and an emulator.
FOREIGN_COMPILER := gcc-$(FOREIGN_GNU)-linux-gnu g++-$(FOREIGN_GNU)-linux-gnu libc6-dev-$(FOREIGN)-cross
FOREIGN_LIBS := $(addsuffix :$(FOREIGN),libzstd-dev libdw-dev libelf-dev libsqlite3-dev libmicrohttpd-dev zlib1g-dev)
# What executes the notebook of the tutorial; 6 MB, and its test is skipped without them.
TEST_NOTEBOOK := python3-ipykernel python3-nbconvert
# Unit, golden and property tests run for it, too, where its libraries can be had.
TEST_FOREIGN := qemu-user-static $(FOREIGN_COMPILER) $(FOREIGN_LIBS) libcmocka-dev:$(FOREIGN)
DIST_PACKAGES := lintian liblzma-dev libbz2-dev $(FOREIGN_COMPILER) $(FOREIGN_LIBS) $(addsuffix :$(FOREIGN),liblzma-dev libbz2-dev)

# The loops over columns only vectorise at -O3: sealing goes from 15.3 to 17.5 M events/s (bench_format).
$(BUILD)/src/trace/codec.o $(BUILD)/src/trace/predict.o $(BUILD)/src/trace/reader_dims.o $(BUILD)/src/report/piles.o: OPTIM := $(if $(DEBUG)$(SAN)$(TSAN),$(OPTIM),-O3)

# The agent: position-independent, hidden symbols, nothing linked but libc.
# What each start and each fork runs is linked first, next to what the loader reads: fewer pages are touched.
AGENT_FIRST := $(patsubst %,src/agent/core/%.c,agent modules loaded arena source ring source_process process_exec real process_env) \
	src/agent/calls/osrt_spare.c
AGENT_SRC := $(AGENT_FIRST) $(filter-out $(AGENT_FIRST),$(wildcard src/agent/*/*.c))
AGENT_OBJ := $(AGENT_SRC:%.c=$(BUILD)/pic/%.o) $(BUILD)/pic/src/agent/calls/lib_thunks.o
# Frame pointers and unwind tables: wrappers read their caller's registers, cancellation unwinds through them.
# No fortification, no inline functions of libc: its headers would turn the names we define into others, or define them.
# Without -fno-plt where the linker cannot take it back for the agent's own functions: each would have a pointer, which the
# loader relocates at the start of every process.
AGENT_FLAGS := -iquote include -fPIC -fvisibility=hidden -ftls-model=initial-exec $(if $(filter x86_64%,$(MACHINE)),-fno-plt) -O2 \
	-fno-omit-frame-pointer -fasynchronous-unwind-tables -fdata-sections -U_FORTIFY_SOURCE -D__NO_INLINE__ \
	-fno-stack-protector

# What a build that was interrupted left half done is made again.
.DELETE_ON_ERROR:
.PHONY: all accuracy setup demo foreign-guest test test-list $(KINDS) screenshots bench bench-view bench-nvtx bench-osrt \
	bench-programs dist install clean format accept docs
all: $(BUILD)/lull $(BUILD)/liblull-agent.so $(BUILD)/liblull-mend.so $(BUILD)/liblull-read.so

# As little as the goals need; by itself, all that is needed to work on it.
TEST_GOALS := setup test $(KINDS)
setup:
	$(Q)tools/setup $(PACKAGES) \
		$(if $(filter $(TEST_GOALS),$(MAKECMDGOALS)),$(TEST_PACKAGES)) \
		$(if $(filter dist dist/%,$(MAKECMDGOALS)),$(DIST_PACKAGES)) \
		$(if $(filter $(TEST_GOALS),$(MAKECMDGOALS)),--if-possible $(TEST_NOTEBOOK) $(TEST_FOREIGN))

# A release links the archive of libmicrohttpd, but no TLS library (src/web/no_tls.c).
$(BUILD)/src/web/no_tls.o: CFLAGS_ALL += $(if $(STATIC),-DLULL_NO_TLS)

# Where a command that was copied elsewhere still finds its agent.
$(BUILD)/src/record/session/locate.o: CFLAGS_ALL += -DLULL_LIBDIR='"$(AGENT_DIR)"'

# Which commit the command is made of. The file changes only when the commit does; "+" for sources that were changed.
.PHONY: commit
$(BUILD)/gen/commit: commit
	@mkdir -p $(@D)
	@if git ls-files --error-unmatch src/main.c >/dev/null 2>&1; then \
		git rev-parse --short=12 HEAD; git diff --quiet HEAD -- src ui || echo +; \
	else echo unknown; fi | tr -d '\n' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/src/main.o: $(BUILD)/gen/commit
$(BUILD)/src/main.o: CFLAGS_ALL += -DLULL_COMMIT='"$(shell cat $(BUILD)/gen/commit)"' $(if $(STATIC),-DLULL_IS_RELEASE)

$(BUILD)/lull: $(filter-out $(BUILD)/src/api/%,$(LULL_OBJ))
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LULL_LIBS)

$(LIB): $(LIB_OBJ)
	@rm -f $@
	$(Q)$(AR) rcsT $@ $^

# The reader as a library, for Python and others: what include/lull_read.h declares, and nothing else to see. The
# archives in it are not to be seen either, so that they do not meet those of the program.
API_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/api/*.c))
$(API_OBJ): CFLAGS_ALL += -iquote include
$(BUILD)/liblull-read.so: $(LIB) src/api/read.map
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(SANFLAGS) $(LDFLAGS) -Wl,--version-script=src/api/read.map -Wl,-soname,$(@F) -Wl,-z,relro,-z,now \
		$(if $(SAN)$(TSAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(API_OBJ) $(LIB) \
		$(call link_libs,$(READ_LIBS)) -l:libsupc++.a -ldl -lpthread -lm

$(BUILD)/liblull-agent.so: $(AGENT_OBJ) $(BUILD)/agent.map
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--version-script=$(BUILD)/agent.map -Wl,-z,relro,-z,now,-z,nodelete \
		-Wl,-z,noseparate-code,--sort-section=name -o $@ $(AGENT_OBJ) -ldl -lpthread -lrt

# What `lull try` preloads to change calls of CUDA, built like the agent.
MEND_OBJ := $(patsubst %.c,$(BUILD)/pic/%.o,$(wildcard src/mend/*.c))
$(BUILD)/liblull-mend.so: $(MEND_OBJ) $(BUILD)/mend.map
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--version-script=$(BUILD)/mend.map -Wl,-z,relro,-z,now,-z,nodelete \
		-o $@ $(MEND_OBJ) -ldl -lpthread

$(BUILD)/mend.map: src/mend/mend.map src/mend/calls.def
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c -std=c11 -iquote src -o $@ $<

# The interposed names come from the lists that also make the wrappers.
$(BUILD)/agent.map: src/agent/core/agent.map src/agent/core/hooks.def src/agent/cuda/neighbours.def src/agent/calls/nccl.def src/wire/osrt.def
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c -std=c11 -iquote src -o $@ $<

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $< (agent)"
	$(Q)$(CC) $(filter-out $(SANFLAGS),$(CFLAGS_ALL)) $(AGENT_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.S
	@mkdir -p $(@D)
	@echo "  AS    $< (agent)"
	$(Q)$(CC) -g -c -o $@ $<

# Between a call and its function, and back: vector registers hold arguments and results there.
$(BUILD)/pic/src/agent/calls/lib_hot.o: AGENT_FLAGS += -mgeneral-regs-only

# The manual pages, for `lull help COMMAND`.
PAGES := $(sort $(wildcard doc/lull*.md))
$(BUILD)/gen/pages.c: tools/embed-pages $(PAGES)
	@mkdir -p $(@D)
	$(Q)tools/embed-pages $(PAGES) > $@

# The page of `lull view`: one script and one style sheet, part of the program. esbuild is a single program; neither
# Node nor anything from a registry is needed to build.
UI_SRC := $(shell find ui/src -name '*.ts' -o -name '*.css' | sort)
$(BUILD)/ui/page.js: $(UI_SRC) tools/list-panels
	@mkdir -p $(@D)
	@echo "  UI    $@"
	$(Q)tools/list-panels ui/src/panels > $(BUILD)/ui/panel-files.ts
	$(Q)NODE_PATH=$(BUILD)/ui esbuild ui/src/main.ts --bundle --minify --charset=utf8 --target=es2021 --log-level=warning \
		--outfile=$@
$(BUILD)/ui/page.css: $(BUILD)/ui/page.js
$(BUILD)/ui/index.html: ui/index.html
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(BUILD)/gen/assets.c: tools/embed-ui $(addprefix $(BUILD)/ui/,index.html page.js page.css)
	@mkdir -p $(@D)
	$(Q)tools/embed-ui $(BUILD)/ui > $@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Vendor headers, where they are installed: only tests use them.
CUDA_INCLUDE ?= $(firstword $(wildcard /usr/local/cuda/include /opt/cuda/include))
CUDA_FLAGS := $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE))
HAS_NVTX := $(wildcard $(CUDA_INCLUDE)/nvtx3/nvToolsExtCounters.h)
NCCL ?= $(or $(firstword $(wildcard $(CUDA_INCLUDE:include=lib*/libnccl.so.2))),libnccl.so.2)

# Tests: test/run.py builds and runs them side by side. T=PATTERN chooses by name, T=e2e/osrt/a_case one case.
RUN_TESTS = FOREIGN_ARCH=$(FOREIGN_ARCH) EMULATOR=$(EMULATOR) test/run.py --build $(BUILD) --jobs $(JOBS)
test: setup
	$(Q)$(RUN_TESTS) $(if $(K),--kind $(K)) $(T)
$(KINDS): setup
	$(Q)$(RUN_TESTS) --kind $@ $(T)
test-list:
	$(Q)$(RUN_TESTS) --list

# How often `lull why` is right on programs as people write them; doc/accuracy.md keeps the table.
accuracy: all
	$(Q)test/corpus/accuracy.py $(BUILD)/lull --write doc/accuracy.md
	$(Q)test/corpus/stability.py $(BUILD)/lull --write doc/accuracy.md

# A case of a program of cmocka can be chosen (LULL_TEST_CASE); leaks are looked for where memory is left.
UNIT_SUPPORT := $(addprefix $(BUILD)/test/support/,filter.o $(if $(SAN),leaks.o))
.SECONDARY: $(UNIT_SUPPORT)

# Unit tests: one program per file in test/unit/FOLDER, where FOLDER is that of src/ which it is about.
vpath test_%.c $(sort $(dir $(wildcard test/unit/*/test_*.c)))
$(BUILD)/unit/%: %.c $(UNIT_SUPPORT) $(LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -iquote test $(CUDA_FLAGS) -MMD -MP -o $@ $< $(UNIT_SUPPORT) $(LINK_LIB) $(LULL_LIBS) -lcmocka

# Some guests are as only gcc makes them (attribute noplt), whatever the rest is built with.
GCC := $(if $(findstring clang,$(CC)),gcc,$(CC))

# End-to-end tests: test_*.c are the tests, the other programs are guests that run under the agent.
MPI_GUESTS := $(patsubst /usr/bin/mpicc.%,%,$(wildcard /usr/bin/mpicc.openmpi /usr/bin/mpicc.mpich))
E2E_TESTS := $(patsubst test/e2e/%.c,$(BUILD)/e2e/%,$(wildcard test/e2e/test_*.c))
E2E_GUESTS := $(addprefix $(BUILD)/e2e/,names launches change_guest unmarked_guest cuda_objects part/libsim_client.so part/libneighbour.so marks lively tour family static_guest \
	split_guest split_guest_fp loop_guest lib_guest lib_guest_now lib_guest_noplt $(MPI_GUESTS:%=mpi_guest_%) $(if $(filter openmpi,$(MPI_GUESTS)),mpi_guest_fixed) nccl_calls nccl_plugin nvtx_raw nvtx_late_own $(if $(HAS_NVTX),nvtx_client nvtx_late))
# Guests are programs of strangers: they show their symbols, and are no libraries unless they say so.
E2E_FLAGS = $(filter-out $(SANFLAGS) $(PIC),$(CFLAGS_ALL)) -iquote test -iquote include \
	-DLULL_BUILD='"$(BUILD)"' -DLULL_NCCL='"$(NCCL)"'

$(E2E_TESTS): $(BUILD)/e2e/%: test/e2e/%.c $(LIB) $(wildcard test/support/*.c test/support/*.h)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) -o $@ $< $(wildcard test/support/*.c) $(LINK_LIB) $(LULL_LIBS) -lcmocka

# Vendor headers that want C++'s <string> get an empty one.
$(BUILD)/e2e/test_pm $(BUILD)/e2e/test_kplan: E2E_FLAGS += $(CUDA_FLAGS) -isystem test/support/cuda

NVTX_GUEST := test/e2e/guests/nvtx_scenario.c test/support/nvtx_instance.c
$(BUILD)/e2e/nvtx_%: test/e2e/guests/nvtx_%.c $(NVTX_GUEST) src/agent/nvtx/nvtx.def
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) $(CUDA_FLAGS) -o $@ $< $(NVTX_GUEST) -ldl -lpthread

# The same without NVIDIA's headers.
$(BUILD)/e2e/nvtx_late_own: test/e2e/guests/nvtx_late.c src/agent/nvtx/nvtx.def
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) -DOWN -o $@ $< -ldl

# The same program without and with frame pointers.
$(BUILD)/e2e/split_guest: E2E_FLAGS += -fomit-frame-pointer
$(BUILD)/e2e/split_guest_fp: test/e2e/guests/split_guest.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -o $@ $< -lpthread

$(BUILD)/e2e/tour: test/support/nvtx_instance.c

# A driver for programs whose calls are changed. Like the real one it calls its own functions, whoever has others of their name.
$(BUILD)/e2e/part/lazy/libcuda.so.1: test/e2e/guests/lazy_cuda.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) -Wno-missing-prototypes -shared -fPIC -Wl,-Bsymbolic -Wl,-soname,$(@F) -o $@ $<

$(BUILD)/e2e/%: test/e2e/guests/%.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) $(E2E_LINK) -o $@ $(filter %.c,$^) -ldl -lpthread

# Programs that call a library in every way, with lazy and with read-only tables.
CXX ?= g++
LIB_GUEST_FLAGS = -g -O2 -Wall -Wextra -L$(BUILD)/e2e/part -Wl,-rpath,'$$ORIGIN/part'
$(BUILD)/e2e/part/libwatched.so: test/e2e/guests/lib_watched.cc test/e2e/guests/lib_watched.h
	@mkdir -p $(@D)
	$(Q)$(CXX) -g -O2 -Wall -Wextra -fPIC -shared -o $@ $<
$(BUILD)/e2e/lib_guest: LIB_GUEST_FLAGS += -Wl,-z,lazy
$(BUILD)/e2e/lib_guest_now: LIB_GUEST_FLAGS += -Wl,-z,relro,-z,now
$(BUILD)/e2e/lib_guest_noplt: LIB_GUEST_FLAGS += -fno-plt -DNO_PLT
$(BUILD)/e2e/part/libplugin.so: test/e2e/guests/lib_plugin.cc $(BUILD)/e2e/part/libwatched.so
	$(Q)$(CXX) $(LIB_GUEST_FLAGS) -fPIC -shared -o $@ $< -lwatched
$(BUILD)/e2e/lib_guest $(BUILD)/e2e/lib_guest_now $(BUILD)/e2e/lib_guest_noplt: test/e2e/guests/lib_guest.cc \
		$(BUILD)/e2e/part/libwatched.so $(BUILD)/e2e/part/libplugin.so
	@echo "  LINK  $@"
	$(Q)$(CXX) $(LIB_GUEST_FLAGS) -o $@ $< -lwatched -lpthread -ldl

# A loop that leaves the device idle, in C++ for its sort.
$(BUILD)/e2e/loop_guest: test/e2e/guests/loop_guest.cc test/support/cuda_guest.h include/lull.h
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CXX) -g -O2 -Wall -Wextra -iquote test -iquote include -o $@ $< -lpthread -ldl

# Ranks of each MPI that is installed, with Fortran's bindings beside.
$(BUILD)/e2e/mpi_guest_openmpi: MPI_LIBS := -lmpi_mpifh
$(BUILD)/e2e/mpi_guest_mpich: MPI_LIBS := -lmpichfort
$(BUILD)/e2e/mpi_guest_%: test/e2e/guests/mpi_guest.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)mpicc.$* -O2 -Wall -Wno-stringop-overflow -o $@ $< $(MPI_LIBS)

# Linked to fixed addresses, a program has its own copies of the library's objects.
$(BUILD)/e2e/mpi_guest_fixed: test/e2e/guests/mpi_guest.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)mpicc.openmpi -O2 -Wall -fno-pie -no-pie -o $@ $< -lmpi_mpifh

# The same on the other architecture, with its compiler and an emulator.
FOREIGN_ARCH := $(if $(filter x86_64,$(NATIVE)),aarch64,x86_64)
FOREIGN_BUILD := build-$(FOREIGN_ARCH)
EMULATOR ?= /usr/bin/qemu-$(FOREIGN_ARCH)-static
HAS_FOREIGN := $(and $(wildcard $(EMULATOR)),$(wildcard /usr/bin/$(FOREIGN_ARCH)-linux-gnu-g++))
ifneq ($(HAS_FOREIGN),)
export LULL_FOREIGN_AGENT := $(FOREIGN_BUILD)/liblull-agent.so
export LULL_FOREIGN_GUEST := $(FOREIGN_BUILD)/e2e/lib_guest
export LULL_FOREIGN_ROOT := /usr/$(FOREIGN_ARCH)-linux-gnu
export LULL_EMULATOR := $(EMULATOR)
else
export NO_FOREIGN := 1
endif
foreign-guest:
	$(Q)$(MAKE) --no-print-directory BUILD=$(FOREIGN_BUILD) CC=$(FOREIGN_ARCH)-linux-gnu-gcc \
		CXX=$(FOREIGN_ARCH)-linux-gnu-g++ CFLAGS= $(FOREIGN_BUILD)/liblull-agent.so $(FOREIGN_BUILD)/e2e/lib_guest

# lull itself on the other architecture, as a command that starts it in the emulator.
$(BUILD)/emulated/lull: $(BUILD)/lull
	@mkdir -p $(@D)
	$(Q)printf '#!/bin/sh\nexec %s "%s" "$$@"\n' $(EMULATOR) '$(CURDIR)/$<' > $@ && chmod +x $@

# Guests of test_osrt.py, and the recorder it plays.
OSRT_GUESTS := $(addprefix $(BUILD)/e2e/,listen osrt_guest process_guest static_guest part/libprocess_guest_part.so \
	$(addprefix part/,libwaits.so libwaits_mixed.so libwaits_needy.so libwaits_now.so libwaits_slow.so libwaits_slow_now.so))

$(BUILD)/e2e/listen: src/wire/osrt.c src/wire/osrt.def src/wire/wire.h
$(BUILD)/e2e/process_guest: E2E_LINK = -Wl,-rpath,'$$ORIGIN/part'
$(BUILD)/e2e/static_guest: E2E_LINK = -static
$(BUILD)/e2e/odd_guest: E2E_LINK = -Wl,--no-as-needed -lm
$(BUILD)/e2e/full_guest: src/wire/wire.h

$(BUILD)/e2e/part/lib%.so: test/e2e/guests/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(E2E_FLAGS) -shared -fPIC -o $@ $< $(E2E_LINK)

# With tables that are filled in call by call or read-only, with two kinds of entries, and slow to load.
$(BUILD)/e2e/part/libwaits.so: E2E_LINK = -Wl,-z,lazy
$(BUILD)/e2e/part/libwaits_mixed.so: WAITS = -DMIXED -Wl,-z,lazy
$(BUILD)/e2e/part/libwaits_needy.so: WAITS = -DNEEDY -fno-plt -nostartfiles -Wl,-z,relro,-z,now \
	-Wl,-rpath,$(abspath $(BUILD)/e2e/part) -L$(BUILD)/e2e/part -lwaits_slow
$(BUILD)/e2e/part/libwaits_needy.so: $(BUILD)/e2e/part/libwaits_slow.so
$(BUILD)/e2e/part/libwaits_now.so: WAITS = -Wl,-z,relro,-z,now
$(BUILD)/e2e/part/libwaits_slow.so: WAITS = -DSLOW -Wl,-z,lazy
$(BUILD)/e2e/part/libwaits_slow_now.so: WAITS = -DSLOW -Wl,-z,relro,-z,now
$(BUILD)/e2e/part/libwaits_%.so: test/e2e/guests/waits.c
	@mkdir -p $(@D)
	$(Q)$(GCC) $(E2E_FLAGS) -shared -fPIC -o $@ $< $(WAITS)

# A program of the runtime; with lazy and with read-only tables.
$(BUILD)/e2e/cudart_guest: CUDART_LINK = -Wl,-z,lazy
$(BUILD)/e2e/cudart_guest_now: CUDART_LINK = -Wl,-z,relro,-z,now
$(BUILD)/e2e/cudart_guest_noplt: CUDART_LINK = -fno-plt
$(BUILD)/e2e/cudart_guest_shared: CUDART_LINK = -Wl,-z,lazy -DSHARED_ENTRY
$(BUILD)/e2e/cudart_guest_shared_now: CUDART_LINK = -Wl,-z,relro,-z,now -DSHARED_ENTRY
$(BUILD)/e2e/cudart_guest_tls: CUDART_LINK = -Wl,-z,relro,-z,now -DLARGE_TLS
$(BUILD)/e2e/part/libcudart_guest.so: CUDART_LINK = -shared -fPIC
CUDART_GUESTS := $(addprefix $(BUILD)/e2e/,cudart_guest cudart_guest_now cudart_guest_noplt cudart_guest_shared cudart_guest_shared_now cudart_guest_tls part/libcudart_guest.so)
$(CUDART_GUESTS): test/e2e/guests/cudart_guest.c sim/cudart.h sim/runtime.def $(BUILD)/sim/libcudart.so.13
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(GCC) $(E2E_FLAGS) -iquote . $(CUDART_LINK) -o $@ $(filter %.c %.so.13,$^) -Wl,--allow-shlib-undefined -ldl -lpthread

# Linked with libcupti, as tools are that live in the program.
$(BUILD)/e2e/part/libneighbour.so: E2E_LINK = $(BUILD)/sim/libcupti.so.13
$(BUILD)/e2e/part/libneighbour.so: | $(BUILD)/sim/libcupti.so.13

# What each test program needs built, beside the command and the agent.
NEEDS := $(addprefix need/,lull sim browser) $(patsubst test/e2e/test_%.c,need/e2e/%,$(wildcard test/e2e/test_*.c)) \
	$(patsubst test/e2e/test_%.py,need/e2e/%,$(wildcard test/e2e/test_*.py))
.PHONY: $(NEEDS)
$(NEEDS): all
need/sim: sim
$(patsubst test/e2e/test_%.c,need/e2e/%,$(wildcard test/e2e/test_*.c)): need/e2e/%: $(BUILD)/e2e/test_% $(E2E_GUESTS) \
	sim $(BUILD)/examples/train_cuda
need/e2e/lib: $(if $(HAS_FOREIGN),foreign-guest)
need/e2e/bench: $(addprefix $(BUILD)/bench/,bench_nvtx bench_osrt bench_lib)
need/e2e/cudart: sim $(CUDART_GUESTS)
need/e2e/attach need/e2e/attach_places: sim $(addprefix $(BUILD)/e2e/,lively part/libneighbour.so nvtx_late_own $(if $(HAS_NVTX),nvtx_late))
need/e2e/demo need/e2e/gate need/e2e/notebook need/e2e/why need/e2e/sqlite need/e2e/top need/e2e/torch need/e2e/tutorial: sim $(BUILD)/examples/train_cuda
need/e2e/demo: $(BUILD)/examples/train
need/e2e/export: $(BUILD)/npm/package-lock.json $(BUILD)/bench/bench_make
need/e2e/loggers: $(BUILD)/npm/package-lock.json
need/e2e/fleet need/e2e/mcp: sim $(BUILD)/examples/train_cuda $(BUILD)/npm/package-lock.json
need/e2e/part need/e2e/xla: sim
need/e2e/duty need/e2e/metrics need/e2e/recipes need/e2e/try: sim $(BUILD)/examples/train_cuda
need/e2e/try: sim $(BUILD)/e2e/change_guest $(BUILD)/e2e/unmarked_guest $(BUILD)/e2e/cudart_guest $(BUILD)/e2e/part/lazy/libcuda.so.1
need/e2e/job: sim $(BUILD)/examples/train_cuda $(BUILD)/e2e/names $(BUILD)/e2e/part/libnfs.so
need/e2e/kernel need/e2e/trouble: sim $(BUILD)/examples/train_cuda $(BUILD)/e2e/launches
need/e2e/odd: sim $(BUILD)/e2e/odd_guest $(BUILD)/e2e/full_guest
need/e2e/osrt: $(OSRT_GUESTS)
need/e2e/ranks: $(BUILD)/sim/lull-job
need/e2e/fleetd: sim $(BUILD)/examples/train_cuda
need/e2e/weeks: sim $(BUILD)/e2e/part/libjump.so
need/e2e/why_loops: sim $(BUILD)/e2e/loop_guest
need/e2e/requests: sim $(BUILD)/e2e/request_guest $(BUILD)/e2e/socket_guest
need/e2e/packages: sim $(BUILD)/examples/train_cuda
need/e2e/promises: sim $(BUILD)/examples/train_cuda $(BUILD)/sim/lull-job
need/browser: sim $(BUILD)/examples/train_cuda $(BUILD)/bench/bench_make test/browser/node_modules/.package-lock.json

# Readers of our exports and a client of our server that are not ours. Without a registry of npm packages their tests are skipped and say so.
$(BUILD)/npm/package-lock.json: test/npm/package-lock.json test/npm/package.json
	@mkdir -p $(@D)
	@echo "  NPM   $(@D)"
	$(Q)cp test/npm/package.json $(@D)/ && if cd $(@D) && cp $(abspath $<) . && \
		npm ci --silent --no-audit --no-fund --ignore-scripts; then :; else rm -f package-lock.json; fi

# Small programs, as those are that are recorded.
AGENT_BENCH := $(addprefix $(BUILD)/bench/,bench_nvtx bench_osrt bench_lib bench_starts)
$(BUILD)/bench/bench_nvtx: test/support/nvtx_instance.c
$(filter-out %/bench_starts,$(AGENT_BENCH)): bench/session.c bench/session.h
$(AGENT_BENCH): $(BUILD)/bench/%: bench/%.c src/wire/wire.h
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(E2E_FLAGS) -iquote . -o $@ $(filter %.c,$^) -ldl -lpthread

bench-osrt: $(BUILD)/bench/bench_osrt $(BUILD)/liblull-agent.so
	$(Q)$< $(abspath $(BUILD)/liblull-agent.so)

bench-nvtx: $(BUILD)/bench/bench_nvtx $(BUILD)/liblull-agent.so
	$(Q)$< $(BUILD)/liblull-agent.so

# The page in a real browser, and the server as somebody who means harm sees it. playwright-core and axe-core come from
# npm, by the lock file, when the tests run; nothing else needs them.
test/browser/node_modules/.package-lock.json: test/browser/package-lock.json
	@echo "  NPM   playwright-core axe-core"
	$(Q)cd test/browser && npm ci --silent --no-audit --no-fund --ignore-scripts
# The pictures of the README, and how the page opens on twelve ordinary recordings, to be looked at.
screenshots: all test/browser/node_modules/.package-lock.json
	$(Q)BUILD=$(BUILD) node test/browser/screenshots.mjs doc/images
	$(Q)BUILD=$(BUILD) node test/browser/gallery.mjs $(BUILD)/screenshots

# How fast the page is, on a made-up report of 10 million kernels; VIEW_KERNELS=... for another size.
VIEW_KERNELS ?= 10000000
bench-view: all $(BUILD)/bench/bench_make test/browser/node_modules/.package-lock.json
	$(Q)BUILD=$(BUILD) node bench/bench_view.mjs $(VIEW_KERNELS)

# The agent's rings and buffers under ThreadSanitizer, which wants everything it sees compiled its way.
build-tsan/test_ring: src/agent/core/ring.c
build-tsan/test_buffers: src/agent/cuda/cuda_buffers.c
build-tsan/%: test/tsan/%.c $(wildcard src/agent/*/*.h src/agent/*/*.def src/base/*.h) src/wire/wire.h
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -g -O1 $(WARN) -fsanitize=thread -iquote src \
		-o $@ $(filter %.c,$^) -lpthread

# On a machine with a GPU: what holds and what it costs there (see their --help; --budget bounds the time). Without one,
# make gpu-sim tries the scripts themselves on the simulated device.
.PHONY: gpu
gpu: all
	$(Q)test/gpu/run.py --lull $(BUILD)/lull $(GPU_FLAGS)
	$(Q)bench/gpu/run.py --lull $(BUILD)/lull $(GPU_FLAGS)

accept: all
	$(Q)test/golden/run $(BUILD)/lull --accept

# Two readers of code that find what compilers do not; .clang-tidy and tools/cppcheck-suppressions say what is off, and
# why. A file is read again when it or something that it includes changed.
LINT_SRC := $(wildcard src/*.c src/*/*.c src/*/*/*.c test/support/*.c bench/*.c examples/*.c)
LINT_FLAGS := -std=c11 -D_GNU_SOURCE -iquote src -iquote . -iquote include -iquote test -Iinclude -DLULL_VERSION='"0"' \
	-DLULL_LIBDIR='"lib"' -DLULL_BUILD='"$(BUILD)"'
# How far the analyzer follows the paths through one function. Its own limit, 225000, takes ten times as long and finds
# nothing more here; LINT_NODES=225000 before a release looks once more.
LINT_NODES ?= 10000
LINT_STAMPS := $(LINT_SRC:%=$(BUILD)/lint/%.tidy)
LINT_FOLDERS := $(sort $(foreach f,$(wildcard src/*/*.c src/*/*/*.c),$(word 2,$(subst /, ,$f))))
.PHONY: lint $(addprefix lint/,$(LINT_FOLDERS) rest cppcheck)
lint:
	$(Q)$(MAKE) --no-print-directory -k -j $(JOBS) $(addprefix lint/,cppcheck $(LINT_FOLDERS) rest)
$(foreach f,$(LINT_FOLDERS),$(eval lint/$f: $(filter $(BUILD)/lint/src/$f/%,$(LINT_STAMPS))))
lint/rest: $(filter-out $(foreach f,$(LINT_FOLDERS),$(BUILD)/lint/src/$f/%),$(LINT_STAMPS))
lint/cppcheck: $(BUILD)/lint/cppcheck

$(BUILD)/lint/%.tidy: % .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY  $<"
	$(Q)$(CC) $(LINT_FLAGS) -MM -MP -MT $@ -MF $(BUILD)/lint/$<.d $<
	$(Q)clang-tidy --quiet $< -- $(LINT_FLAGS) $(filter -W%,$(WARN)) -Xclang -analyzer-config -Xclang max-nodes=$(LINT_NODES) >$@.log 2>/dev/null || { cat $@.log; exit 1; }
	@touch $@

# All at once, because a part of what it finds spans files; it keeps what it knows of files that did not change.
$(BUILD)/lint/cppcheck: $(LINT_SRC) $(wildcard src/*/*.[hd]* src/*/*/*.[hd]* include/*.h test/support/*.h) tools/cppcheck-suppressions
	@mkdir -p $@.cache
	@echo "  CPPCHECK"
	$(Q)cppcheck --quiet --enable=warning,performance,portability --std=c11 --error-exitcode=1 --inline-suppr \
		--suppressions-list=tools/cppcheck-suppressions --cppcheck-build-dir=$@.cache -I src -I . -I include -I test \
		-D__cppcheck__ -D_GNU_SOURCE -D__linux__ -D__$(NATIVE)__ -DLULL_VERSION='"0"' -DLULL_LIBDIR='"lib"' $(LINT_SRC)
	@touch $@

# Whitespace is nobody's opinion: clang-format for code, our own tool for comments that are too wide.
FORMATTED := $(shell find src include test bench sim examples -name '*.[ch]' 2>/dev/null)
format:
	$(Q)clang-format -i $(FORMATTED)
	$(Q)tools/wrap-comments $(FORMATTED)

# Loaded into the Python programs that are recorded; beside the agent.
PYTHON_FILES := sitecustomize.py lull/py.typed $(patsubst python/%,%,$(wildcard python/lull/*.py python/lull/remedies/*.py))

install: all
	$(Q)install -D -m 755 $(BUILD)/lull $(DESTDIR)$(PREFIX)/bin/lull
	$(Q)install -D -m 755 $(BUILD)/liblull-agent.so $(DESTDIR)$(AGENT_DIR)/liblull-agent.so
	$(Q)install -D -m 755 $(BUILD)/liblull-mend.so $(DESTDIR)$(AGENT_DIR)/liblull-mend.so
	$(Q)install -D -m 755 $(BUILD)/liblull-read.so $(DESTDIR)$(AGENT_DIR)/liblull-read.so
	$(Q)for file in lull.h lull_read.h; do install -D -m 644 include/$$file $(DESTDIR)$(PREFIX)/include/$$file || exit 1; done
	$(Q)for file in $(PYTHON_FILES); do install -D -m 644 python/$$file $(DESTDIR)$(AGENT_DIR)/python/$$file || exit 1; done
	$(Q)install -D -m 644 packaging/completions/lull.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/lull
	$(Q)install -D -m 644 packaging/completions/_lull $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_lull
	$(Q)install -D -m 644 packaging/completions/lull.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/lull.fish
	$(Q)for page in $(PAGES:doc/%.md=%); do \
		to=$(DESTDIR)$(MAN_DIR)/man$${page##*.}; \
		mkdir -p $$to && tools/md2man $(VERSION) doc/$$page.md > $$to/$$page || exit 1; done

# Releases: both architectures from one machine. The oldest glibc they must start on is that of RHEL 9 and
# Ubuntu 22.04. Names, owners, times and order are fixed, so that the same sources give the same bytes.
GLIBC_MAX := 2.34
DIST_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
DIST_ARCHS ?= aarch64 x86_64
DIST_TREES := $(foreach arch,$(DIST_ARCHS),dist/lull-$(VERSION)-linux-$(arch))

.PHONY: $(DIST_TREES) $(DIST_TREES:%=%.packages)
dist: $(DIST_TREES:%=%.tar.gz) $(DIST_TREES:%=%.packages)

$(DIST_TREES): dist/lull-$(VERSION)-linux-%: setup
	$(Q)rm -rf $@
	$(Q)$(MAKE) --no-print-directory -j $(JOBS) BUILD=build-dist-$* CC=$*-linux-gnu-gcc STATIC=1 install \
		CFLAGS=-ffile-prefix-map=$(CURDIR)=. LDFLAGS=-Wl,-S \
		DESTDIR=$(CURDIR)/$@ PREFIX= AGENT_DIR=/lib MAN_DIR=/share/man
	$(Q)tools/check-glibc $(GLIBC_MAX) $@/bin/lull $@/lib/liblull-agent.so $@/lib/liblull-mend.so $@/lib/liblull-read.so
	$(Q)mkdir -p $@/doc && cp doc/*.md $@/doc/ && cp LICENSE $@/
	$(Q)tools/licences $* $(VERSION) $$(cat build-dist-$*/gen/commit) $(DIST_EPOCH) $@/licenses

# The same programs for pip and for apt (packaging/README.md).
$(DIST_TREES:%=%.packages): dist/lull-$(VERSION)-linux-%.packages: dist/lull-$(VERSION)-linux-%
	$(Q)path=$$(tools/make-wheel $< $* $(VERSION) $(DIST_EPOCH) dist) && echo "  WHEEL $$path"
	$(Q)path=$$(tools/make-deb $< $* $(VERSION) $(DIST_EPOCH) dist) && echo "  DEB   $$path" && \
		if command -v lintian >/dev/null; then lintian --fail-on error,warning --allow-root "$$path"; \
		else echo "  no lintian here: $$path is not checked"; fi

$(DIST_TREES:%=%.tar.gz): %.tar.gz: %
	@echo "  TAR   $@"
	$(Q)tar -C dist --sort=name --mtime=@$(DIST_EPOCH) --owner=0 --group=0 --numeric-owner \
		--mode=u+rw,go+r,go-w -cf - $(notdir $*) | gzip -9n > $@

# The simulated device (sim/README.md): stand-ins for libcuda, libcudart and libcupti, and one libcupti that lacks what CUDA
# 11.6 and 11.7 brought.
SIM_CUDA_OBJ := $(patsubst %,$(BUILD)/sim/%.o,cuda_call cuda_graph cuda_names cuda_stream cuda_work executor kernels \
	libcuda memory model ptx)
SIM_CUPTI_OBJ := $(patsubst %,$(BUILD)/sim/%.o,cupti_buffer cupti_clock cupti_pcsampling cupti_profiler \
	cupti_record cupti_resource libcupti)
SIM := $(addprefix $(BUILD)/sim/,libcuda.so.1 libcudart.so.13 libnvidia-ml.so.1 libcupti.so.13 old/libcupti.so.13)
SIM_FLAGS := -fPIC -fvisibility=hidden $(if $(DEBUG),,-O3)

$(BUILD)/sim/%.o: sim/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(filter-out $(SANFLAGS),$(CFLAGS_ALL)) $(SIM_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/sim/libcuda.so.1: $(SIM_CUDA_OBJ)
	@echo "  LINK  $@"
	$(Q)$(CC) -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -o $@ $^ -ldl -lpthread

$(BUILD)/sim/libcudart.so.13: $(BUILD)/sim/libcudart.o $(BUILD)/sim/libcuda.so.1
	@echo "  LINK  $@"
	$(Q)$(CC) -shared -Wl,-soname,libcudart.so.13 -o $@ $^ -lpthread

$(BUILD)/sim/libnvidia-ml.so.1: $(BUILD)/sim/libnvml.o
	@echo "  LINK  $@"
	$(Q)$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 -o $@ $^

$(BUILD)/sim/libcupti.so.13: $(SIM_CUPTI_OBJ) sim/libcupti.map
$(BUILD)/sim/old/libcupti.so.13: $(SIM_CUPTI_OBJ) sim/libcupti_old.map
$(filter %/libcupti.so.13,$(SIM)):
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -shared -Wl,-soname,libcupti.so.13 -Wl,-z,nodelete -Wl,--version-script=$(filter %.map,$^) \
		-o $@ $(filter %.o,$^) -ldl -lpthread

# A made-up job of many ranks, as the reports that its recorders would have written (sim/job.h).
$(BUILD)/sim/lull-job: sim/job.c sim/job_model.c sim/job_write.c sim/job.h $(LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -iquote . -o $@ $(filter %.c,$^) $(LINK_LIB) $(LULL_LIBS)

.PHONY: sim
sim: $(SIM) $(BUILD)/sim/lull-job

# The example programs, built as a user would: optimised, with debug information, and lull.h from the tree.
$(BUILD)/examples/%: examples/%.c include/lull.h
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -g -O3 $(WARN) -Iinclude -o $@ $< -ldl -lpthread -lm

$(BUILD)/examples/train_cuda: examples/train_cuda_ptx.h

demo: setup
	$(Q)$(MAKE) -s --no-print-directory -j $(JOBS) all sim $(BUILD)/examples/train $(BUILD)/examples/train_cuda
	$(Q)examples/demo.sh $(BUILD)

# Fuzzers: one program per file in test/fuzz, always with ASan and UBSan.
$(BUILD)/fuzz/%: test/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -o $@ $< $(LINK_LIB) $(LULL_LIBS)

# Benchmarks: one program per file in bench, optimised like the product.
BENCH := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
BENCH_GEN := $(patsubst bench/%.c,$(BUILD)/bench/%.o,$(wildcard bench/gen_*.c))
$(BUILD)/bench/%: bench/%.c $(BENCH_GEN) $(LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -iquote test -iquote . -MMD -MP -o $@ $< $(BENCH_GEN) $(LINK_LIB) $(LULL_LIBS)

# The reports that several of them read.
$(BENCH_GEN): CFLAGS_ALL += -iquote .

bench-programs: $(BENCH)

# All of them, as one table. Fewer events than the 100 M of the promises, unless FULL=1; RECORD=1 keeps the result.
bench: all bench-programs $(BUILD)/sim/lull-job
	$(Q)tools/bench $(BUILD) $(if $(FULL),100000000,20000000) \
		$(if $(RECORD),bench/results/$(shell date +%F)-$(NATIVE).txt)
	$(Q)$(if $(shell command -v npm),$(MAKE) --no-print-directory bench-view,echo "bench-view: skipped, no npm here")

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

clean:
	rm -rf build build-* dist
