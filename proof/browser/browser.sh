#!/usr/bin/env bash
# Tests the page of samekey ui in headless Chromium, on records in DynamoDB Local. With "screenshots" as argument it
# writes docs/images/; with "site" it tests the site that make site has built, which needs node only.
#
# Needs Go, Java 17 with Maven (DynamoDB Local), and node; node.sh says which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/proof/browser
node=$root/.venv/browser

. "$root/internal/tools/node.sh"
install_node proof/browser browser

# Node looks for packages beside the program.
cp "$source"/*.mjs "$node"

cd "$root"
if [[ ${1:-} == site ]]; then
	mkdir -p "$node/tmp"
	TMPDIR=$node/tmp SAMEKEY_ROOT=$root exec node --test --test-reporter=spec "$node/site.mjs"
fi
mkdir -p .bin "$node/tmp"
go build -C cmd/samekey -o ../../.bin/samekey .
go build -C proof -o ../.bin/ui-stage ./browser/stage
go build -C proof -o ../.bin/browser-shop ./browser/shop

# Chromium unpacks itself into the folder for temporary files: its own, not everybody's.
export TMPDIR=$node/tmp SAMEKEY_ROOT=$root
if [[ ${1:-} == screenshots ]]; then
	mkdir -p docs/images
	node "$node/screenshots.mjs"
else
	node --test --test-reporter=spec --test-concurrency=1 "$node"/*.test.mjs
fi
