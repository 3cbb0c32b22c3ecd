"""Hooks of MkDocs: what the pages need that are also read in the repository.

A link to a file outside `docs/` works in the repository. The site does not have that file, so there
the link becomes its text and the path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The page's text with links that leave the site undone."""
    docs = Path(config["docs_dir"]).resolve()
    here = Path(page.file.abs_src_path).parent

    def undone(match: re.Match[str]) -> str:
        target = (here / match[2].partition("#")[0]).resolve()
        if target.is_relative_to(docs) or not target.exists():
            return match[0]
        path = target.relative_to(docs.parent).as_posix()
        return f"{match[1]} (`{path}` in the repository)"

    return _LINK.sub(undone, markdown)
