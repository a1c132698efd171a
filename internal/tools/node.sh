# shellcheck shell=bash
# Sourced by the scripts beside it, which set $root: packages of Node tools, pinned and hash-checked.
#
# Needs node (20.19 or newer) with npm, and its configured registry for the first run. What is installed lies in .venv/, which
# git ignores, and is installed anew when its lock file changes.

# install_node SOURCE NAME, with a folder of the repository as SOURCE, makes .venv/NAME hold exactly what SOURCE/package-lock.json says.
install_node() {
	local source=$root/$1 node=$root/.venv/$2 want
	want="$(cat "$source"/{package.json,package-lock.json,.npmrc}) $(node --version)"
	if [[ -f $node/lock && $(<"$node/lock") == "$want" ]]; then
		return
	fi
	echo "installing $1/package-lock.json into .venv/$2 (up to half a minute)"
	rm -rf "$node"
	mkdir -p "$node"
	cp "$source"/{package.json,package-lock.json,.npmrc} "$node"
	(cd "$node" && npm ci --silent)
	# Last, so that an install that was interrupted starts over.
	echo "$want" >"$node/lock"
}
