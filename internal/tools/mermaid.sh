#!/usr/bin/env bash
# Renders every Mermaid diagram of the pages and of Go's comments, so that none is broken.
#
# Needs node (20.19 or newer) with npm, and its configured registry for the first run. What is installed lies in
# .venv/, which git ignores, and is installed anew when its lock file changes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/internal/tools/mermaid
node=$root/.venv/mermaid

want="$(cat "$source"/{package.json,package-lock.json,.npmrc}) $(node --version)"
if [[ ! -f $node/lock || $(<"$node/lock") != "$want" ]]; then
	echo "installing mermaid/package-lock.json into .venv/mermaid (about half a minute)"
	rm -rf "$node"
	mkdir -p "$node"
	cp "$source"/{package.json,package-lock.json,.npmrc} "$node"
	(cd "$node" && npm ci --silent)
	# Last, so that an install that was interrupted starts over.
	echo "$want" >"$node/lock"
fi

# Node looks for packages beside the program.
cp -r "$source"/{render.mjs,render.test.mjs,testdata} "$node"

# First the program itself: a check that finds nothing is worth nothing.
(cd "$node" && node --test --test-reporter=dot render.test.mjs)

cd "$root"
git ls-files -z --cached --others --exclude-standard -- '*.md' '*.go' | xargs -0 grep -lsZ '```mermaid\|~~~mermaid' |
	xargs -0 node "$node/render.mjs"
