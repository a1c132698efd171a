#!/usr/bin/env bash
# fuzz.sh DURATION: every fuzz target of the module, one after the other, since
# go test takes one package and one target at a time.
set -euo pipefail
cd "$(dirname "$0")/../.."
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | while read -r _ target; do
    echo "fuzz $target ($(dirname "$file"))"
    go test -run='^$' -fuzz="^$target\$" -fuzztime="$1" "$(dirname "$file")" </dev/null
  done
done
