#!/usr/bin/env bash
# Lints the templates with the SAM CLI, cfn-lint and checkov.
#
# Needs what venv.sh needs; no AWS account.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# The result must not depend on whose machine it is: no account, no Region, no call home, no wait for an instance role.
unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_ENDPOINT_URL
export AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true
export AWS_DEFAULT_REGION=us-east-1 SAM_CLI_TELEMETRY=0

. "$root/internal/tools/venv.sh"

cd "$root"

apps=(template.yaml examples/hello/template.yaml)

# The stack that templates nest, and its form for other tools than SAM.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go run -C cmd/samekey . stack --standalone "$work/samekey.yaml"
templates=("${apps[@]}" deploy/samekey.yaml "$work/samekey.yaml")

install lint internal/tools/requirements.txt
for template in "${apps[@]}" examples/shop/template.yaml examples/checkout/template.yaml; do
	run lint sam validate --lint --template "$template"
done

# WS1004 wants a log group named after each function. Ours is given to the function by LoggingConfig, which it can't see.
run lint cfn-lint --append-rules cfn_lint_serverless.rules --ignore-checks WS1004 --template "${templates[@]}"
echo "cfn-lint: ok"

install security internal/tools/requirements-security.txt
skip=(
	CKV_AWS_18  # access logs of the bucket: Lambda writes there, and somebody reads once in a while
	CKV_AWS_21  # versions in the bucket: each entry is written once, under a name of its own
	CKV_AWS_27  # customer's key for queues: SQS encrypts them by its own, which this check doesn't take for any
	CKV_AWS_115 # reserved concurrency per function: the gateway's throttle is the brake, and a new account has none to reserve
	CKV_AWS_116 # dead-letter queue: only for asynchronous calls; behind an API the caller has the error, and retries
	CKV_AWS_117 # VPC: everything it calls is an AWS API, and a VPC only adds to the start and the bill
	CKV_AWS_119 # customer's key for the table: costs more and needs grants; the table says how to add one
	CKV_AWS_158 # customer's key for logs: they are encrypted anyway, and neither keys nor bodies are logged
	CKV_AWS_173 # customer's key for the environment: it holds a table's name, no secret
)
run security checkov --file "${templates[@]}" --framework cloudformation --compact --quiet \
	--skip-download --skip-check "$(IFS=, && echo "${skip[*]}")" 2>&1 | tee "$work/checkov"
# A template that it can't read is none to checkov.
if grep -q "Parsing errors" "$work/checkov"; then
	exit 1
fi
echo "checkov: ok"
