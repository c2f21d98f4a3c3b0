"""Takes pictures of the search page of a running `smoothclir-serve --ui`, for README and docs.

python -m docs.site.screenshots http://localhost:8501 docs/images 'red apple'
"""

from __future__ import annotations

import base64
import sys
import urllib.parse
from pathlib import Path

from tests.server.devtools import browser

# Name -> width, height and what the address has beside the query.
PICTURES = {
    "page": (1100, 900, {}),
    "page-phone": (390, 844, {}),
    "page-compared": (1400, 900, {"retriever": "dense", "other": "lexical"}),
}


def main(address: str, directory: str, query: str) -> None:
    """Writes `PICTURES` as PNG files."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    with browser() as tab:
        light = {"name": "prefers-color-scheme", "value": "light"}
        tab.call("Emulation.setEmulatedMedia", features=[light])
        for name, (width, height, more) in PICTURES.items():
            tab.size(width, height)
            tab.open(f"{address}/?{urllib.parse.urlencode({'q': query, **more})}")
            for place in ["results", *(["others"] if "other" in more else [])]:
                tab.wait_for(f"document.querySelectorAll('#{place} li').length > 0")
            picture = base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"])
            Path(directory, f"{name}.png").write_bytes(picture)
            print(f"{directory}/{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
