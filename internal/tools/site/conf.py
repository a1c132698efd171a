"""How Sphinx makes the site of docs/. internal/tools/site.sh runs it.

The pages stay as GitHub shows them. Links that lead out of docs/ go to GitHub, and the shelves of docs/README.md are the rail.
"""

import os
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
VERSION = os.environ["SAMEKEY_VERSION"]
REF = "v" + VERSION if VERSION[0].isdigit() else VERSION
GITHUB = "https://github.com/samekey/samekey"

project = "Samekey"
copyright = "the authors of Samekey; Apache-2.0"
version = release = VERSION
extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6
myst_fence_as_directive = ["mermaid"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # a line of nothing but … leaves something out of a program

html_theme = "furo"
html_title = f"Samekey {VERSION}"
html_copy_source = False
html_static_path = [os.environ["SAMEKEY_SITE_ASSETS"]]
html_js_files = ["mermaid.min.js", "draw.js"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/scroll-start.html", "sidebar/brand.html", "sidebar/search.html", "sidebar/navigation.html", "versions.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {"source_repository": GITHUB, "source_branch": REF, "source_directory": "docs/"}


class Mermaid(Directive):
    """A fenced block of Mermaid, which the reader's browser draws."""

    has_content = True

    def run(self):
        text = "\n".join(self.content).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


FENCE = re.compile(r"(?ms)^ *```.*?^ *```[^\n]*$")
LINK = re.compile(r"(\]\()([^()\s]+)(\))")


def outwards(page, text):
    """Leads links that leave docs/, and links to folders, to GitHub."""

    def one(match):
        target, _, anchor = match[2].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = Path(os.path.normpath(page.parent / target))
        if path.is_relative_to(DOCS) and path.is_file():
            return match[0]
        url = f"{GITHUB}/{'tree' if path.is_dir() else 'blob'}/{REF}/{path.relative_to(ROOT)}"
        return match[1] + url + ("#" + anchor if anchor else "") + match[3]

    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(one, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join(parts + [LINK.sub(one, text[at:])])


def tree(caption, pages):
    lines = "\n".join(pages)
    return f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def rail():
    """The shelves with their pages, in the order of docs/README.md. A page that isn't there fails the build."""
    text, shelves, listed = (DOCS / "README.md").read_text(), "", {"README"}
    for part in re.split(r"(?m)^## ", text)[1:]:
        caption, rest = part.split("\n", 1)
        pages = []
        for target in re.findall(r"\]\(([a-z-]+/[^()#\s]+)\.md\)", rest):
            if target not in listed:
                listed.add(target)
                pages.append(target)
        shelves += tree(caption, pages)
    return shelves


def read(app, docname, source):
    page = DOCS / (docname + ".md")
    source[0] = outwards(page, source[0])
    if docname == "README":
        source[0] += rail()
    elif docname == "inside/decisions/README":
        source[0] += tree("Decisions", sorted(p.stem for p in page.parent.glob("0*.md")))


def setup(app):
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", read)
