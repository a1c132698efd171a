#!/usr/bin/env bash
# Builds every function twice, in two folders with other names and with caches of their own, and compares the
# bytes. DIST is a first build that exists already, such as dist after `make build`.
#
# usage: reproducible.sh [DIST]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# tree copies what git knows of the working tree.
tree() {
	mkdir -p "$1"
	(cd "$root" && git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c '[ -e "{}" ] && echo "{}" || true' |
		tar -cf - -T - | tar -xf - -C "$1")
}

# build DIR builds in DIR with an empty build cache, and with the module cache under another name.
build() {
	ln -s "$(go env GOMODCACHE)" "$1.modules"
	GOCACHE="$1.cache" GOMODCACHE="$1.modules" GOFLAGS=-buildvcs=auto make -s -C "$1" build ARCH="${ARCH:-arm64}" >/dev/null
}

first=${1:-}
if [[ -z $first ]]; then
	tree "$work/here"
	build "$work/here"
	first=$work/here/dist
fi
tree "$work/a-folder-elsewhere"
build "$work/a-folder-elsewhere"

failed=0 n=0
while read -r file; do
	n=$((n + 1))
	if cmp -s "$first/$file" "$work/a-folder-elsewhere/dist/$file"; then
		echo "$(sha256sum <"$first/$file" | cut -c1-16)  $file"
	else
		echo "reproducible: $file differs between two builds" >&2
		failed=1
	fi
done < <(cd "$work/a-folder-elsewhere/dist" && find . -name bootstrap | sort)
[[ $n -ge 5 ]] || { echo "reproducible: $n functions were built" >&2; exit 1; }
exit $failed
