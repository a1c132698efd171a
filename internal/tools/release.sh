#!/usr/bin/env bash
# release.sh prepare VERSION   a commit that is the release (the changelog's date, the nested modules' requirements), and one that
#                              the tree is developed on after it
# release.sh tag VERSION       its tags, signed: TAGFLAGS=-a for tags without a signature
#
# docs/inside/releasing.md has the commands in their order; a test of proof/rules types them in a clone.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Besides the root's, in the order of who needs whom. The tree is developed with replace directives, which a released go.mod must
# not have: go run MODULE@VERSION refuses it.
modules=(internal/local cmd/samekey kms otel)

fail() {
	echo "release.sh: $*" >&2
	exit 1
}

command=${1:-} version=${2:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "VERSION is \"$version\": write it as 0.1.0"
[[ -z $(git status --porcelain) ]] || fail "the checkout has changes"
[[ $(git symbolic-ref --short HEAD) == main ]] || fail "the release is made on main"
[[ -z $(git tag --list "v$version") ]] || fail "v$version is there: tags are never moved"

case $command in
prepare)
	for form in plain sealed; do
		golden=dynamo/testdata/golden/v${version%.*}-$form.json
		[[ -f $golden ]] || fail "there is no $golden: go test ./dynamo -run '^TestGoldenItems\$' -write-golden v${version%.*}"
	done
	go run -C proof ./figures -check || fail "docs/inside/proof.md has old figures"
	grep -q "^## Unreleased: $version$" CHANGELOG.md || fail "CHANGELOG.md has no \"## Unreleased: $version\""
	sed -i.old "s/^## Unreleased: $version$/## $version - $(date -u +%F)/" CHANGELOG.md
	rm CHANGELOG.md.old
	proxy=$(mktemp -d)
	trap 'chmod -R u+w "$proxy"; rm -rf "$proxy"' EXIT
	go build -C internal/tools/supply -o "$proxy/supply" .
	publish() { "$proxy/supply" proxy -o "$proxy/modules" . "v$version" "$1"; }
	git commit --quiet --all --message "Release $version"
	publish .
	for module in "${modules[@]}"; do
		for path in '' /internal/local; do
			name=github.com/samekey/samekey$path
			go -C "$module" mod edit -dropreplace="$name"
			if grep -q "$name v0.0.0" "$module/go.mod"; then go -C "$module" mod edit -require="$name@v$version"; fi
		done
		# The checksums of what is not published yet.
		GOPROXY="file://$proxy/modules,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" GONOSUMDB=github.com/samekey GOFLAGS=-mod=mod GOMODCACHE="$proxy/cache" go -C "$module" mod tidy
		git commit --quiet --all --amend --no-edit
		publish "$module"
	done
	release=$(git rev-parse --short HEAD)
	for module in "${modules[@]}"; do git checkout --quiet HEAD~1 -- "$module/go.mod" "$module/go.sum"; done
	git commit --quiet --all --message "samekey: develop after $version"
	echo "the release is the commit $release"
	;;
tag)
	[[ $(git log -1 --format=%s HEAD~1) == "Release $version" ]] || fail "the commit before the last is not the release: make release VERSION=$version"
	for prefix in '' "${modules[@]/%//}"; do
		git tag "${TAGFLAGS:--s}" --message "Samekey $version" "${prefix}v$version" HEAD~1
		echo "${prefix}v$version"
	done
	;;
*)
	fail "say prepare or tag"
	;;
esac
