"""Writes FOLDER/index.html, which lists the versions of the site beside it, releases first, the newest first."""

import html
import sys
from pathlib import Path

folder = Path(sys.argv[1])


def order(name):
    numbers = name.split(".")
    return (all(n.isdigit() for n in numbers), [int(n) for n in numbers if n.isdigit()], name)


versions = sorted((p.name for p in folder.iterdir() if (p / "index.html").is_file()), key=order, reverse=True)
items = "\n".join(f'<li><a href="{html.escape(v)}/index.html">{html.escape(v)}</a></li>' for v in versions)
(folder / "index.html").write_text(
    f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Samekey</title>\n<h1>Samekey</h1>\n<ul>\n{items}\n</ul>\n</html>\n'
)
