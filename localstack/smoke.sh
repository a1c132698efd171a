#!/usr/bin/env bash
# Runs the tests of the store against LocalStack. Nothing is deployed; see README.md beside this file.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export IDEM_TABLE=${IDEM_TABLE:-samekey}

compose() { docker compose --file localstack/compose.yaml "$@"; }
trap 'compose down --volumes' EXIT
compose up --wait

# -count=1, because Go's test cache doesn't see that another database answers at the address. REQUIRE_DYNAMODB, so that
# no test passes by being skipped.
AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:4566 REQUIRE_DYNAMODB=1 \
	AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1 \
	go test -count=1 "$@" ./dynamo/...
