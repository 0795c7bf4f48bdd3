# lull: the only build description of the C part.
#
#   make            build/lull and build/liblull-agent.so
#   make setup      install what is missing (apt), or print the one command that does
#   make demo       record the example before and after its fix and show what changed
#   make test       all tests            make bench   what is measured, as ratios
#   make dist       release tarballs for aarch64 and x86_64
#
# V=1 shows commands, DEBUG=1 builds without optimisation, SAN=1 with ASan and UBSan, TSAN=1 with TSan.

VERSION := $(shell cat VERSION)
CC ?= gcc
PREFIX ?= /usr/local
SETUP := $(filter demo test bench dist,$(MAKECMDGOALS))

BUILD ?= build$(if $(SAN),-san)$(if $(TSAN),-tsan)$(if $(DEBUG),-debug)
Q := $(if $(V),,@)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(if $(CI),-Werror)
OPTIM := $(if $(DEBUG),-O0,$(if $(SAN)$(TSAN),-O1,-O2))
ASAN_FLAGS := -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	-DLULL_IO_FAULTS
SANFLAGS := $(if $(SAN),$(ASAN_FLAGS))$(if $(TSAN),-fsanitize=thread)
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -g $(OPTIM) $(WARN) $(SANFLAGS) -iquote src -DLULL_VERSION='"$(VERSION)"' $(CFLAGS)

# The command: everything but the agent.
LULL_SRC := $(filter-out src/agent/%,$(wildcard src/*.c src/*/*.c))
LULL_OBJ := $(LULL_SRC:%.c=$(BUILD)/%.o) $(BUILD)/gen/pages.o
LIB_OBJ := $(filter-out $(BUILD)/src/main.o,$(LULL_OBJ))
LULL_LIBS := $(or $(LIBS),-lzstd -ldw -lelf) -lpthread -lm

# The loops over columns only vectorise at -O3: sealing runs a quarter faster.
$(BUILD)/src/trace/codec.o $(BUILD)/src/trace/predict.o: OPTIM := $(if $(DEBUG)$(SAN)$(TSAN),$(OPTIM),-O3)

# The agent: position-independent, hidden symbols, nothing linked but libc.
AGENT_SRC := $(wildcard src/agent/*.c)
AGENT_OBJ := $(AGENT_SRC:%.c=$(BUILD)/pic/%.o)
AGENT_FLAGS := -iquote include -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -O2

.PHONY: all setup demo test bench dist install clean unit golden e2e fuzz check accept docs bench-programs
all: $(BUILD)/lull $(BUILD)/liblull-agent.so

$(BUILD)/lull: $(LULL_OBJ)
	@echo "  LINK  $@"
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LULL_LIBS)

$(BUILD)/liblull-agent.so: $(AGENT_OBJ) src/agent/agent.map
	@echo "  LINK  $@"
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--version-script=src/agent/agent.map -Wl,-z,relro,-z,now \
		-o $@ $(AGENT_OBJ) -ldl -lpthread -lrt

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $< (agent)"
	$(Q)$(CC) $(filter-out $(SANFLAGS),$(CFLAGS_ALL)) $(AGENT_FLAGS) -MMD -MP -c -o $@ $<

# The manual pages, for `lull help COMMAND`.
PAGES := $(sort $(wildcard doc/*.md))
$(BUILD)/gen/pages.c: tools/embed-pages $(PAGES)
	@mkdir -p $(@D)
	$(Q)tools/embed-pages $(PAGES) > $@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	@echo "  CC    $<"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Unit tests: one program per file in test/unit, always with ASan and UBSan.
UNIT := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
$(BUILD)/unit/%: test/unit/%.c $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -iquote test -MMD -MP -o $@ $< $(LIB_OBJ) $(LULL_LIBS) -lcmocka

unit-programs: $(UNIT:%=$(BUILD)/unit/%)
unit:
	$(Q)$(MAKE) --no-print-directory SAN=1 unit-programs
	$(Q)for t in $(UNIT); do build-san/unit/$$t 2>build-san/unit/$$t.log >/dev/null || { cat build-san/unit/$$t.log; exit 1; }; \
		grep -h 'PASSED' build-san/unit/$$t.log | sed "s/^/$$t: /"; done

# Benchmarks: one program per file in bench, optimised like the product.
BENCH := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
$(BUILD)/bench/%: bench/%.c $(LIB_OBJ)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -o $@ $< $(LIB_OBJ) $(LULL_LIBS)

bench-programs: $(BENCH)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

clean:
	rm -rf build build-* dist
