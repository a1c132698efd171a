# shellcheck shell=bash
# Sourced by the scripts beside it, which set $root: environments of Python tools, pinned and hash-checked.
#
# Needs python3 (3.11 or newer) with venv, and pip's configured package index for the first run. What is installed lies in
# .venv/, which git ignores, and is installed anew when its lock file changes.

# install NAME LOCK, with a file of the repository as LOCK, makes .venv/NAME hold exactly what LOCK says.
install() {
	local venv=$root/.venv/$1 lock=$root/$2 want
	# The Python is part of it: another one may need other wheels, and the old one's files may be gone.
	want=$(python3 - "$lock" <<-'PY'
		import hashlib, platform, sys
		if sys.version_info < (3, 11):
		    sys.exit("needs Python 3.11 or newer, python3 is " + platform.python_version())
		print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest(), sys.executable, platform.python_version())
	PY
	)
	if [[ -f $venv/lock && $(<"$venv/lock") == "$want" ]]; then
		return
	fi
	echo "installing $2 into .venv/$1 (about half a minute)"
	rm -rf "$venv"
	python3 -m venv "$venv"
	# The lock is complete, so there is nothing to resolve (--no-deps); wheels only, so that no package's code runs here.
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
		--no-deps --require-hashes --only-binary :all: --requirement "$lock"
	# Last, so that an install that was interrupted starts over.
	echo "$want" >"$venv/lock"
}

# run NAME COMMAND... runs a command of .venv/NAME. It names the Python itself, since the first line of these commands
# breaks when the clone is moved.
run() {
	"$root/.venv/$1/bin/python" "$root/.venv/$1/bin/$2" "${@:3}"
}
