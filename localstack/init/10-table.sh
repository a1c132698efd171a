#!/usr/bin/env bash
# Makes the table as samekey.yaml defines it, as far as it concerns a client: key, billing, TTL, stream. Protection,
# backups and encryption mean nothing here. LocalStack runs this in its container, where awslocal is the AWS CLI.
set -euo pipefail

table=${IDEM_TABLE:-samekey}

awslocal dynamodb create-table --table-name "$table" \
	--attribute-definitions AttributeName=pk,AttributeType=S \
	--key-schema AttributeName=pk,KeyType=HASH \
	--billing-mode PAY_PER_REQUEST \
	--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES >/dev/null
awslocal dynamodb wait table-exists --table-name "$table"
awslocal dynamodb update-time-to-live --table-name "$table" \
	--time-to-live-specification Enabled=true,AttributeName=exp_s >/dev/null
echo "table $table is ready"
