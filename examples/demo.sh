#!/bin/sh
# demo - record the example training loop before and after its fix, and show what changed.
#
# Usage: examples/demo.sh [BUILD], from the root of the tree; `make demo` builds everything first. The reports stay in
# BUILD/demo. All numbers that are shown come out of them through `lull stats`.
build=${1:-build}
lull=$build/lull
train=$build/examples/train_cuda
out=$build/demo

fail() {
	echo "demo: $*" >&2
	exit 1
}

# The real device if there is one, else the simulated one; reports made with it say so. DEMO_DEVICE=simulated is for tests.
if [ "$DEMO_DEVICE" = simulated ]; then
	device='a simulated device, as was asked for; its times are made up'
elif [ -e /dev/nvidiactl ] && ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	device='the GPU of this machine'
	with=
else
	device='a simulated device: there is no GPU here, and its times are made up'
	DEMO_DEVICE=simulated
fi
if [ "$DEMO_DEVICE" = simulated ]; then
	with="LD_LIBRARY_PATH=$build/sim "
	LD_LIBRARY_PATH=$build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
fi

mkdir -p "$out" || exit 1
rm -f "$out"/*.lull "$out"/*.lull.part

# A report as lines of tab-separated cells; $1 the file, $2 the report.
table() {
	"$lull" stats -q -r "$2" -f tsv "$out/$1.lull" 2>/dev/null
}

# Cells are found by the name of their column, so that columns may be added. Times are in ns.
columns='
function read_header(   i) { for (i = 1; i <= NF; i++) at[$i] = i }
function cell(name) {
	if (!(name in at)) {
		print "demo: there is no column " name > "/dev/stderr"
		exit 1
	}
	return $at[name]
}
function ms(ns) { return sprintf("%.2f ms", ns / 1e6) }
NR == 1 { read_header(); next }'

# Median and sum of the steps, in ns.
steps_of() {
	table "$1" step_sum | awk -F '\t' "$columns"'
	{ print cell("Med (ns)"), cell("Total Time (ns)"), cell("Steps"); exit }'
}

# Losses, and what the kernel refused, are said before the numbers they concern.
show_losses() {
	table "$1" losses | awk -F '\t' "$columns"'
	cell("Severity") != "notice" || cell("Name") ~ /refused|no_switches|timer_taken/ {
		print "note: " cell("Meaning")
	}' | fold -s -w 76 | sed 's/^/   /'
}

show_steps() {
	table "$1" step_sum | awk -F '\t' "$columns"'
	{ printf "   %d steps: median %s, fastest %s, slowest %s\n", cell("Steps"), ms(cell("Med (ns)")),
		ms(cell("Min (ns)")), ms(cell("Max (ns)")) }'
}

show_ranges() {
	table "$1" nvtx_sum | awk -F '\t' -v n_steps="$3" -v all_ns="$2" "$columns"'
	NR == 2 { printf "\n   %-15s %10s  %6s\n", "range", "each step", "share" }
	{
		share = cell("Total Time (ns)") / all_ns
		bar = ""
		while (length(bar) < int(share * 40 + 0.5))
			bar = bar "#"
		name = cell("Range")
		sub(/^:/, "", name)
		line = sprintf("   %-15s %10s  %4.1f %%  %s", name, ms(cell("Total Time (ns)") / n_steps), share * 100, bar)
		sub(/ +$/, "", line)
		print line
	}'
}

# How much of the time the device worked, in percent.
busy_of() {
	table "$1" overlap | awk -F '\t' "$columns"'{ print cell("Busy (%)"); exit }'
}

show_device() {
	table "$1" overlap | awk -F '\t' "$columns"'
	{ printf "\n   %s: busy %s %% of the time\n", cell("Device"), cell("Busy (%)")
	  printf "   %-24s %10s\n   %-24s %10s\n   %-24s %10s\n   %-24s %10s\n", "kernels alone",
		ms(cell("Compute Alone (ns)")), "copies alone", ms(cell("Copy Alone (ns)")),
		"both at once", ms(cell("Compute+Copy (ns)")), "idle", ms(cell("Idle (ns)")) }'
}

# Run the loop under lull; $1 the name of the report, then the arguments of train.
record() {
	name=$1
	shift
	echo "   \$ $with$lull profile -o $out/$name $train${1:+ $*}"
	"$lull" profile -o "$out/$name" "$train" "$@" > "$out/$name.txt" 2>&1 ||
		fail "recording failed: $(cat "$out/$name.txt")"
	sed '/ next: /d; s/^/   /' "$out/$name.txt"
	echo
	echo "   \$ $lull stats -r step_sum,nvtx_sum,overlap $out/$name.lull"
	show_losses "$name"
	set -- $(steps_of "$name")
	[ $# -eq 3 ] || fail "no steps in $out/$name.lull"
	show_steps "$name" && show_ranges "$name" "$2" "$3" && show_device "$name" ||
		fail "$out/$name.lull is not as expected"
	echo
}

# What lull itself says about a recording; $1 its name.
show_why() {
	echo "   \$ $lull why $out/$1.lull"
	"$lull" why "$out/$1.lull" > "$out/$1.why" || fail "lull why failed on $out/$1.lull"
	sed '/^Simulated/d' "$out/$1.why"
	echo
}

# The step that `lull why` predicted for the fix, in ms.
predicted_ms() {
	sed -n 's/.*Predicted step after the fix: \([0-9.]*\) ms.*/\1/p' "$out/before.why"
}

show_change() {
	set -- $(steps_of before) $(steps_of after) $(busy_of before) $(busy_of after)
	awk -v before_ns="$1" -v after_ns="$4" -v before_busy="$7" -v after_busy="$8" \
		-v before_mean_ns="$(($2 / $3))" -v after_mean_ns="$(($5 / $6))" \
		-v predicted_ms="$(predicted_ms)" 'BEGIN {
		gain = before_ns / after_ns
		printf "   %-26s %10s %10s\n", "", "before", "after"
		printf "   %-26s %7.2f ms %7.2f ms   %.2f times as fast\n", "median of all steps", before_ns / 1e6,
			after_ns / 1e6, gain
		printf "   %-26s %7.2f ms %7.2f ms   %.2f times as fast\n", "average of all steps", before_mean_ns / 1e6,
			after_mean_ns / 1e6, before_mean_ns / after_mean_ns
		if (predicted_ms)
			printf "   %-26s %10s %6.2f ms   %.2f times as fast\n", "predicted, first cause only", "", predicted_ms,
				before_mean_ns / 1e6 / predicted_ms
		printf "   %-26s %8.1f %% %8.1f %%\n", "device busy", before_busy, after_busy
		if (gain < 1.3) {
			print "\n   Less than expected: the fix needs a second CPU that is free, and this"
			print "   machine is small or busy. `lull stats -r threads` says how long each"
			print "   thread was running and how long it was not."
		}
	}'
	sed -n 's/.*\(checksum=[0-9a-f]*\).*/\1/p' "$out/before.txt" "$out/after.txt" | uniq | awk '
	{ n++ }
	END { print n == 1 ? "\n   The result is the same to the last bit: only the waiting is gone." : "" }'
}

cat << TEXT

lull demo: a training loop that waits for its data, and the same loop repaired
(examples/train_cuda.c; everything below comes out of two recordings)
On $device.

1. As it is

TEXT
record before
show_why before
cat << 'TEXT'

2. Repaired: a thread prepares the next batch in pinned memory, and it is copied
   while the device computes (--fixed)

TEXT
record after --fixed
show_why after
cat << 'TEXT'

   prepare_batch now runs on a thread of its own, and copies overlap kernels; what
   is left of data_load is the wait until the device has room for another batch.

3. What changed

TEXT
show_change
echo
echo "   The same without the steps of warm-up, and for which causes:"
echo "   \$ $lull diff $out/before.lull $out/after.lull"
"$lull" diff --top 3 "$out/before.lull" "$out/after.lull" 2>/dev/null | awk '/^Kernels|^Copies/ { exit } { print "   " $0 }'
cat << TEXT

4. Look further

   $lull stats $out/before.lull               all summaries
   $lull stats -r gpu_idle $out/before.lull   each gap of the device, and why
   $lull why --all $out/before.lull           every cause, with its proof
   $lull diff $out/before.lull $out/after.lull  the rest of it: kernels, copies, calls
   $lull view $out/before.lull $out/after.lull  both in the browser
   $lull profile python your_script.py              your own program
   $lull doctor                                     what can be recorded here
   $lull help profile                               the manual page

TEXT
