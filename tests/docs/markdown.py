"""What the tests of the documentation need to know of Markdown: its code, links and anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^( *)(```+)(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"<!-- not run: .+ -->")
_INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block. ``title``: the file that it is. ``run`` is False where a comment
    ``<!-- not run: why -->`` stands above it."""

    language: str
    title: str | None
    text: str
    line: int
    run: bool


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return _split(text)[0]


def prose(text: str) -> str:
    """A page without its code."""
    return _INLINE_CODE.sub("", _split(text)[1])


def links(text: str) -> list[str]:
    """Where the links and images of a page lead, other sites included."""
    words = prose(text)
    return _LINK.findall(words) + _REFERENCE.findall(words)


def anchors(text: str) -> set[str]:
    """The names of a page's headings, as MkDocs gives them (and GitHub, but for repeated ones)."""
    found: set[str] = set()
    for heading in _HEADING.findall(_split(text)[1]):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\s-]", "", plain.replace("`", "").strip().lower())
        slug = re.sub(r"[-\s]+", "-", slug).strip("-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}_{number}"
        found.add(unique)
    return found


def _split(text: str) -> tuple[list[Block], str]:
    found: list[Block] = []
    rest: list[str] = []
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        fence = _FENCE.match(lines[i])
        if not fence:
            rest.append(lines[i])
            i += 1
            continue
        indent, ticks, info = fence.groups()
        end = next(
            j for j in range(i + 1, len(lines) + 1) if j == len(lines) or lines[j].strip() == ticks
        )
        above = next((line for line in reversed(rest) if line.strip()), "")
        title = _TITLE.search(info)
        found.append(
            Block(
                language=info.split()[0] if info.strip() else "",
                title=None if title is None else title[1],
                text="".join(
                    line[len(indent) if line.startswith(indent) else 0 :] + "\n"
                    for line in lines[i + 1 : end]
                ),
                line=i + 1,
                run=_NOT_RUN.fullmatch(above.strip()) is None,
            )
        )
        rest.append("")
        i = end + 1
    return found, "\n".join(rest)
