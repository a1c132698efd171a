#!/usr/bin/env bash
# Plays the scenarios of breaks_test.go with Samekey and with Powertools for AWS Lambda, for Python and TypeScript, and writes
# peers.json and its table. Needs Python and Node; venv.sh and node.sh say which.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/internal/tools

. "$tools/venv.sh"

install peers-python proof/bench/peers/requirements.txt

. "$tools/node.sh"

install_node proof/bench/peers peers-node

cd "$root"
PEERS=$root/.venv go test -C proof ./bench -run '^TestPeers$' -count=1 -v
go test -C proof ./bench -run '^TestPage$' -count=1 -update
