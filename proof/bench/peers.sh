#!/usr/bin/env bash
# Measures Samekey beside Powertools for AWS Lambda, for Python and TypeScript.
#
# Needs Python and Node; venv.sh and node.sh say which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/internal/tools

. "$tools/venv.sh"

install peers-python proof/bench/peers/requirements.txt

. "$tools/node.sh"

install_node proof/bench/peers peers-node

cd "$root"
go run -C proof ./bench -only breaks,races "$@"
