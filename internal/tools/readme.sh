#!/usr/bin/env bash
# readme.sh SECTION: the commands in the first code block under README.md's heading SECTION, one a line, without their
# comments. What CI runs is what it prints, so that the two can't differ.
set -euo pipefail
cd "$(dirname "$0")/../.."

commands=$(awk -v heading="## $1" '
	/^## /             { here = $0 == heading }
	here && /^```/     { if (inside) exit; inside = 1; next }
	here && inside     { sub(/[ \t]+#.*/, ""); if ($0 != "") print }
' README.md)
if [[ -z $commands ]]; then
	echo "readme.sh: README.md has no code block under \"## $1\"" >&2
	exit 1
fi
echo "$commands"
