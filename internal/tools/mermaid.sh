#!/usr/bin/env bash
# Renders every Mermaid diagram of the pages and of Go's comments, so that none is broken.
#
# It needs node; node.sh says which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/internal/tools/mermaid
node=$root/.venv/mermaid

. "$root/internal/tools/node.sh"
install_node internal/tools/mermaid mermaid

# Node looks for packages beside the program.
cp -r "$source"/{render.mjs,render.test.mjs,testdata} "$node"

# First the program itself: a check that finds nothing is worth nothing.
(cd "$node" && node --test --test-reporter=dot render.test.mjs)

cd "$root"
git ls-files -z --cached --others --exclude-standard -- '*.md' '*.go' | xargs -0 grep -lsZ '```mermaid\|~~~mermaid' |
	xargs -0 node "$node/render.mjs"
