#!/usr/bin/env bash
# Points Stripe's official clients for Python and Node at the Stripe presets (internal/stripetest).
#
# Needs what venv.sh needs, node (20 or newer) with npm, and its configured registry for the first run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/internal/tools

. "$tools/venv.sh"

install stripe requirements-stripe.txt

node=$root/.venv/stripe-node
want="$(cat "$tools"/stripe-node/{package.json,package-lock.json,.npmrc}) $(node --version)"
if [[ ! -f $node/lock || $(<"$node/lock") != "$want" ]]; then
	echo "installing stripe-node/package-lock.json into .venv/stripe-node"
	rm -rf "$node"
	mkdir -p "$node"
	cp "$tools"/stripe-node/{package.json,package-lock.json,.npmrc} "$node"
	(cd "$node" && npm ci --silent)
	# Last, so that an install that was interrupted starts over.
	echo "$want" >"$node/lock"
fi

cd "$root"
REQUIRE_STRIPE_SDKS=1 go test -count=1 "$@" ./internal/stripetest
