"""Copies the documentation into the source directory of the site: prepare.py REPOSITORY TARGET.

* README.md becomes the front page; the other pages of the root and of docs/ keep their names.
* A link to another file of the repository, such as a source file, leads to a copy of it under files/.
* A link to a directory becomes plain text: a static site has no directory listings.
* Fenced code blocks lose the attributes that only the tests of the documents read.
"""

import re
import shutil
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```([a-z]+)[ ,]\S.*$", re.MULTILINE)


def pages(root):
    """Returns every page, as a map from its path in the repository to its path in the site."""
    found = {}
    for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        inside = page.relative_to(root)
        name = inside.relative_to("docs") if inside.parts[0] == "docs" else inside
        found[page.resolve()] = Path("index.md") if str(name) == "README.md" else name
    return found


def relative(target, source):
    """Returns the link from the page `source` of the site to the file `target` of the site."""
    return "../" * (len(source.parts) - 1) + target.as_posix()


def prepare(root, target):
    site = pages(root)
    copies = {}
    for page, name in site.items():

        def rewrite(match, page=page, name=name):
            image, text, link = match.groups()
            path, _, fragment = link.partition("#")
            if "://" in path or not path:
                return match.group()
            file = (page.parent / path).resolve()
            if file.is_dir():
                return text
            if file in site:
                destination = site[file]
            elif (root / "docs") in file.parents:
                destination = file.relative_to(root / "docs")
                copies[file] = destination
            else:
                inside = file.relative_to(root)
                destination = Path("files", inside.parent, inside.name + ".txt")
                copies[file] = destination
            fragment = f"#{fragment}" if fragment else ""
            return f"{image}[{text}]({relative(destination, name)}{fragment})"

        text = LINK.sub(rewrite, page.read_text(encoding="utf-8"))
        text = FENCE.sub(r"```\1", text)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    for file, destination in copies.items():
        (target / destination).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target / destination)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
