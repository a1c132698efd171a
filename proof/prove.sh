#!/usr/bin/env bash
# prove.sh PROOF...: the proofs by force, one after the other, each with its minutes. A proof that fails doesn't keep the
# others from running. `make prove` names them all; .github/workflows/nightly.yml runs each in a job of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
. internal/tools/steps.sh

# Nothing is skipped, and nothing of an earlier run counts.
export REQUIRE_DYNAMODB=1

# What proof/prove does, with this machine in the place of an account, and with planted faults.
examined() { go test -C proof -count=1 -timeout=90m -run '^(TestOnThisMachine|TestPlantedInTheStack)$' ./prove; }

prove() {
	case $1 in
	tests) PROVE=all make -s test samples TESTFLAGS="-count=1 -timeout=90m" && examined ;;
	race) make -s test samples TESTFLAGS="-count=1 -race -shuffle=on -timeout=60m" ;;
	planted) make -s planted && SIM_REQUESTS=5000 go test -C proof ./simulation -run '^TestPlanted' -count=1 -timeout=4h ;;
	fuzz) make -s fuzz FUZZTIME="${FUZZTIME:-1m}" ;;
	deploy) SMOKE_ALL=1 make -s smoke-deploy ;;
	pages) make -s pictures && make -s site-browser && make -s browser ;;
	clients) make -s stripe-sdks && make -s cdk && make -s demo-hello ;;
	figures | sealed | fuzz-tenants | load | soak | packages) make -s "$1" ;;
	*)
		echo "prove: there is no proof $1" >&2
		return 1
		;;
	esac
}

failed=0
for proof in "$@"; do
	step "$proof"
	if prove "$proof"; then step_ends; else
		step_ends '  FAILED'
		failed=1
	fi
done
exit $failed
