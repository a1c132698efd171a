#!/usr/bin/env bash
# Rehearses two releases, and what strangers do with them: rehearse.py says what it checks. It takes what is committed. Needs what
# smoke-deploy.sh needs, and Java for DynamoDB Local.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/internal/tools/venv.sh"
install lint internal/tools/requirements.txt
install ministack internal/tools/requirements-ministack.txt

# Nothing of an account on this machine gets in, and nothing of the make that runs this.
unset "${!AWS_@}" "${!SAM_@}" "${!LOCAL_@}" "${!SAMEKEY@}" GOFLAGS ARCH MAKEFLAGS MFLAGS MAKELEVEL VERSION
PYTHONPATH=$root/internal/tools exec "$root/.venv/ministack/bin/python" "$root/proof/rehearsal/rehearse.py"
