#!/usr/bin/env bash
# Deploys both templates by the README's commands, and examples/checkout, to MiniStack, a stand-in for AWS on this machine, and calls them:
# smoke_deploy.py says what it checks, docs/inside/proof.md what that shows. Needs Go and what venv.sh needs; no AWS account.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/internal/tools/venv.sh"
install lint internal/tools/requirements.txt
install ministack internal/tools/requirements-ministack.txt

# Nothing of an account on this machine gets in.
unset "${!AWS_@}" "${!SAM_@}"
"$root/.venv/ministack/bin/python" "$root/internal/tools/smoke_deploy.py"
