"""What the documentation says is true: its code runs, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import monofuzz
from tests.docs.markdown import DOCS, PAGES, ROOT, anchors, blocks, links, name_of, read
from tests.docs.program import FILES, Program

LANGUAGES = FILES | {"sh", "text"}
WITH_CODE = [page for page in PAGES if blocks(read(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_runs_and_prints_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a page run in order, as one program, in an empty folder."""
    monkeypatch.setenv("MONOFUZZ_CACHE", str(tmp_path / "cache"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    program = Program(name_of(page), here)
    for block in blocks(read(page)):
        assert block.language in LANGUAGES, (
            f"{name_of(page)}:{block.line}: a block in the language {block.language!r}"
        )
        program.run(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(read(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f"{name_of(page)} links to {target}"
        assert not path or other != DOCS, f"{name_of(page)} links to a folder, {target}"
        if anchor and other.suffix == ".md":
            assert anchor in anchors(read(other)), f"{name_of(page)} links to {target}"


def test_each_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", read(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_ci_runs_the_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", read(ROOT / "README.md"), re.MULTILINE)
    assert len(commands) == 2
    assert commands[1].endswith("pytest -n auto")
    assert commands[1] in read(ROOT / ".ci" / "run").splitlines()


def test_versions_agree() -> None:
    assert f"\nversion: {monofuzz.__version__}\n" in read(ROOT / "CITATION.cff")


def test_notes_and_reports_are_listed() -> None:
    for folder in (DOCS / "notes", ROOT / "reports"):
        index = read(folder / "README.md")
        for path in folder.iterdir():
            assert path.name == "README.md" or path.name in index, f"{path} is not listed"
