# Completion of lull for bash: asks the command itself (lull complete), so it knows its options, reports, sessions, pids.
_lull() {
	local cur=${COMP_WORDS[COMP_CWORD]} line suffix
	local -a answer=()
	local IFS=$'\n'

	[[ $cur == = ]] && cur=
	mapfile -t answer < <("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	COMPREPLY=()
	for line in "${answer[@]}"; do
		case $line in
		:reports)
			compopt -o filenames 2>/dev/null
			COMPREPLY+=($(compgen -d -- "$cur"))
			for suffix in lull json json.gz sqlite nsys-rep pickle; do
				COMPREPLY+=($(compgen -f -X "!*.$suffix" -- "$cur"))
			done
			;;
		:parts)
			compopt -o filenames 2>/dev/null
			COMPREPLY+=($(compgen -d -- "$cur") $(compgen -f -X '!*.lull.part' -- "$cur"))
			;;
		:files)
			compopt -o filenames 2>/dev/null
			COMPREPLY+=($(compgen -f -- "$cur"))
			;;
		:command)
			COMPREPLY+=($(compgen -c -- "$cur"))
			;;
		:program*)
			if declare -F _command_offset >/dev/null; then
				_command_offset "${line#:program }"
			else
				compopt -o filenames 2>/dev/null
				COMPREPLY+=($(compgen -f -- "$cur"))
			fi
			;;
		*)
			line=${line%%$'\t'*}
			[[ $line == *= ]] && compopt -o nospace 2>/dev/null
			COMPREPLY+=("$line")
			;;
		esac
	done
}
complete -F _lull lull
