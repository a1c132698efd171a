#!/usr/bin/env bash
# Builds the site of docs/ into dist/site/VERSION, and dist/site/index.html with all versions that are there. VERSION is
# main, or a release as 0.1.0. A link that leads nowhere, and every other warning, fails.
#
# Needs what venv.sh and node.sh need. The build itself needs no network, and neither does the site: Mermaid is in it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/internal/tools/site
out=$root/dist/site/${VERSION:=main}
build=$root/.venv/site-build

. "$root/internal/tools/venv.sh"
. "$root/internal/tools/node.sh"
install site internal/tools/requirements-site.txt
install_node internal/tools/mermaid mermaid

rm -rf "$out" "$build"
mkdir -p "$build/assets"
cp "$root/.venv/mermaid/node_modules/mermaid/dist/mermaid.min.js" "$source/draw.js" "$build/assets/"

# -W: warnings are errors, all of them are shown (--keep-going).
export SAMEKEY_VERSION=$VERSION SAMEKEY_SITE_ASSETS=$build/assets PYTHONDONTWRITEBYTECODE=1
"$root/.venv/site/bin/python" -m sphinx -b html -W --keep-going -q -j auto -c "$source" -d "$build/doctrees" "$root/docs" "$out"
rm -rf "$out/.buildinfo"
cp "$out/README.html" "$out/index.html"
"$root/.venv/site/bin/python" "$source/versions.py" "$root/dist/site"
echo "dist/site/$VERSION: $(find "$out" -name '*.html' | wc -l) pages"
