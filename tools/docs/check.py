"""Checks the internal links of the built site: check.py SITE. Prints dead links and exits with 1."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = {""}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        link = values.get("href") or values.get("src")
        if link and tag in ("a", "img"):
            self.links.append(link)


def main(site):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead, count = [], 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                dead.append(f"{path.relative_to(site)}: no file for {link}")
            elif file in pages and unquote(parts.fragment) not in pages[file].anchors:
                dead.append(f"{path.relative_to(site)}: no anchor for {link}")
    print("\n".join(dead) or f"{count} internal links in {len(pages)} pages, none dead")
    return bool(dead) or not count


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
