#!/bin/sh
# gate - record a program, say why its device waits, and refuse a change that made it slower.
#
# Usage: gate.sh BASELINE COMMAND...
#
# The first time, or on the main branch (GATE_SAVE=1), the recording becomes the baseline; keep the folder .lull-gate
# between runs (a CI cache or an artifact). Several runs a side (GATE_RUNS) tell noise between runs from a change.
# Exit status: 0 pass, 1 regressed, 2 no verdict.
set -u
lull=${LULL:-lull}
name=$1
shift
reports=
run=1
while [ "$run" -le "${GATE_RUNS:-1}" ]; do
	"$lull" profile -f true -o "gate-$run" --cuda-memory-usage=true "$@" || exit 2
	reports="$reports gate-$run.lull"
	run=$((run + 1))
done

"$lull" why gate-1.lull

if [ -n "${GATE_SAVE:-}" ] || [ ! -d ".lull-gate/$name" ]; then
	# The reports' names have no blanks in them.
	# shellcheck disable=SC2086
	exec "$lull" gate --save "$name" $reports
fi
# shellcheck disable=SC2086
exec "$lull" gate --baseline "$name" --metric step_time,idle_share,launches,peak_memory \
	--junit gate.xml --markdown gate.md ${GITHUB_ACTIONS:+--github} $reports
