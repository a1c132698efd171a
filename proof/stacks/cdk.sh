#!/usr/bin/env bash
# Synthesizes an application with the stack by AWS's CDK, as docs/operate/deploying.md shows it. Needs go, and node as
# internal/tools/node.sh says.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
node=$root/.venv/cdk

. "$root/internal/tools/node.sh"
install_node proof/stacks/cdk cdk
cp "$root/proof/stacks/cdk/app.mjs" "$node" # Node looks for packages beside the program

app=$(mktemp -d)
trap 'rm -rf "$app"' EXIT
mkdir -p "$app/dist/orders" "$app/dist/samekey-worker"
cd "$root"
go run -C cmd/samekey . stack --standalone "$app/samekey-standalone.yaml"
for program in orders samekey-worker; do echo "the CDK only packs it" >"$app/dist/$program/bootstrap"; done
node "$node/app.mjs" "$app" 2>"$app/warnings" || { cat "$app/warnings" >&2; exit 1; }
