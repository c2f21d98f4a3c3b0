"""Takes pictures of pages: the search page of `smoothclir-serve --ui`, or the site of `make site`.

python -m docs.site.screenshots http://localhost:8501 docs/images 'red apple'
python -m docs.site.screenshots http://localhost:8000 build/pictures
"""

from __future__ import annotations

import base64
import sys
import time
import urllib.parse
from pathlib import Path

from tests.server.devtools import browser

# Name -> width, height and the rest of the address besides the query.
SEARCHES = {
    "page": (1100, 900, {}),
    "page-phone": (390, 844, {}),
    "page-compared": (1400, 900, {"retriever": "dense", "other": "lexical"}),
}
# Name -> width, height, page.
PAGES = {
    "site": (1300, 1000, "index.html"),
    "site-phone": (390, 844, "index.html"),
    "site-concepts": (1300, 1400, "concepts.html"),
    "site-command": (1300, 1000, "commands/smoothclir-index.html"),
}


def main(address: str, directory: str, query: str = "") -> None:
    """Writes PNG files of `SEARCHES`, or of `PAGES` where there is no query."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    with browser() as tab:
        light = {"name": "prefers-color-scheme", "value": "light"}
        tab.call("Emulation.setEmulatedMedia", features=[light])
        for name, (width, height, rest) in (SEARCHES if query else PAGES).items():
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
            tab.call("Emulation.setDeviceMetricsOverride", **size)
            if query:
                tab.open(f"{address}/?{urllib.parse.urlencode({'q': query, **rest})}")
                for place in ["results", *(["others"] if "other" in rest else [])]:
                    tab.wait_for(f"document.querySelectorAll('#{place} li').length > 0")
            else:
                tab.open(f"{address}/{rest}")
                tab.wait_for(
                    "document.readyState === 'complete' && document.querySelector('h1') !== null"
                )
                time.sleep(1)  # fonts and pictures are drawn after the page is complete
            picture = base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"])
            Path(directory, f"{name}.png").write_bytes(picture)
            print(f"{directory}/{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
