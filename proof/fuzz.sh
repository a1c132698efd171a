#!/usr/bin/env bash
# fuzz.sh DURATION: every fuzz target, one after the other, since go test takes one
# package and one target at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() { # FOLDER TARGET
  go test -C "$1" -run='^$' -fuzz="^$2\$" -fuzztime="$duration" . </dev/null 2>&1 | tee "$log"
}

# On a machine that stalls, the end of DURATION can catch a worker in the middle
# of an input, and go test then fails with nothing but this: no input has failed,
# or it would be named. The target is run again, and has to pass.
only_late() { grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input' "$log"; }

grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | while read -r _ target; do
    echo "fuzz $target ($(dirname "$file"))"
    if ! fuzz "$(dirname "$file")" "$target"; then
      only_late || exit 1
      fuzz "$(dirname "$file")" "$target" || exit 1
    fi
  done
done
