#!/usr/bin/env bash
# Plays a new user with a stopwatch: docs/start/first-handler.md from an empty folder, then phases, a job and the worker, a
# deployment to MiniStack, and a change under `samekey local --watch`; and an existing service that is made safe.
# stopwatch.py and existing.py say what they check. Needs what smoke-deploy.sh needs, and Java for DynamoDB Local.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/internal/tools/venv.sh"
install lint internal/tools/requirements.txt
install ministack internal/tools/requirements-ministack.txt

# Nothing of an account on this machine gets in.
unset "${!AWS_@}" "${!SAM_@}" "${!LOCAL_@}"
for play in stopwatch existing; do
	PYTHONPATH=$root/internal/tools "$root/.venv/ministack/bin/python" "$root/proof/stopwatch/$play.py"
done
