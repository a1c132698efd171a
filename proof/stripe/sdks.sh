#!/usr/bin/env bash
# Points Stripe's official clients for Python and Node at the Stripe presets (proof/stripe).
#
# Needs Python and Node; venv.sh and node.sh say which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/internal/tools

. "$tools/venv.sh"

install stripe proof/stripe/requirements.txt

. "$tools/node.sh"

install_node proof/stripe stripe-node

cd "$root"
REQUIRE_STRIPE_SDKS=1 go test -C proof -count=1 "$@" ./stripe
