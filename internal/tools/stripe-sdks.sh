#!/usr/bin/env bash
# Points Stripe's official clients for Python and Node at the Stripe presets (internal/stripetest).
#
# Needs Python and Node; venv.sh and node.sh say which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/internal/tools

. "$tools/venv.sh"

install stripe requirements-stripe.txt

. "$tools/node.sh"

install_node stripe-node stripe-node

cd "$root"
REQUIRE_STRIPE_SDKS=1 go test -count=1 "$@" ./internal/stripetest
