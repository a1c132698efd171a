#!/usr/bin/env bash
# release.sh prepare VERSION   a commit that is the release: the changelog's date, the nested modules' requirement
# release.sh tag VERSION       its tags, signed: TAGFLAGS=-a for tags without a signature
#
# docs/inside/releasing.md has the commands in their order; a test of proof/rules types them in a clone.
set -euo pipefail
cd "$(dirname "$0")/../.."

modules=(kms otel) # that users import, besides the root's; their replace directives don't reach importers

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
	grep -q "^## Unreleased: $version$" CHANGELOG.md || fail "CHANGELOG.md has no \"## Unreleased: $version\""
	sed -i.old "s/^## Unreleased: $version$/## $version - $(date -u +%F)/" CHANGELOG.md
	rm CHANGELOG.md.old
	for module in "${modules[@]}"; do
		go -C "$module" mod edit -require="github.com/samekey/samekey@v$version"
	done
	git commit --quiet --all --message "Release $version"
	echo "the release is the commit $(git rev-parse --short HEAD)"
	;;
tag)
	[[ $(git log -1 --format=%s) == "Release $version" ]] || fail "the last commit is not the release: make release VERSION=$version"
	for prefix in '' "${modules[@]/%//}"; do
		git tag "${TAGFLAGS:--s}" --message "Samekey $version" "${prefix}v$version"
		echo "${prefix}v$version"
	done
	;;
*)
	fail "say prepare or tag"
	;;
esac
