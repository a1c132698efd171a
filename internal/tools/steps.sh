# To be sourced: step NAME begins a step, and says how long the one before took. At the end of the script, also of one that
# fails, a table has the minutes of all steps. The script's last status stays its status.
steps_began=0
steps_name=
steps_table=

step() {
	step_ends
	steps_name=$*
	steps_began=$SECONDS
	printf '\n== %s\n' "$*"
}

step_ends() {
	[[ -n $steps_name ]] || return 0
	local took=$((SECONDS - steps_began))
	local line
	line=$(printf '%4d:%02d  %s' $((took / 60)) $((took % 60)) "$steps_name")
	steps_table+="$line${1:-}"$'\n'
	steps_name=
	printf '== %s%s\n' "$line" "${1:-}"
}

steps_end() {
	local status=$?
	if ((status == 0)); then step_ends; else step_ends '  FAILED'; fi
	printf '\n%s%4d:%02d  in all\n' "$steps_table" $((SECONDS / 60)) $((SECONDS % 60))
	exit $status
}

trap steps_end EXIT
