"""Pages: what they hold is the map, and nothing that they are given becomes markup."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monofuzz.counterexample import save
from monofuzz.errors import MonofuzzError, StoredFileError, UsageError
from monofuzz.report import stepping
from monofuzz.report.inputs import load_item
from monofuzz.report.page import SCRIPTS, render, write_page
from monofuzz.report.payload import EXACT, map_blob, pack
from monofuzz.report.story import tell
from monofuzz.search.verdict import cliffs, holes
from tests.report.maps import all_kinds, counterexample, map_of

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'\ud800"


def unpack(blob: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """What the page's own script does with a blob."""
    document = zlib.decompress(base64.b64decode(blob, validate=True))
    (length,) = struct.unpack_from("<I", document)
    head = json.loads(document[4 : 4 + length])
    at, columns = 4 + length, {}
    for name, kind, planes in head["columns"]:
        part = np.frombuffer(document, np.uint8, planes * head["rows"], at)
        wide = np.zeros((head["rows"], 8), np.uint8)
        wide[:, :planes] = part.reshape(planes, head["rows"]).T
        columns[name] = wide.reshape(-1).view("<f8" if kind == "float" else "<u8")
        at += len(part)
    assert at == len(document)
    return head, columns


class Tags(HTMLParser):
    """The tags of a page, and the text within each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags:
            self.texts.setdefault(self.tags[-1][0], []).append(data)


def test_a_blob_holds_the_map() -> None:
    found = all_kinds()
    head, columns = unpack(map_blob(found))
    table = found.table
    lo = np.empty(len(table), np.int64)
    at = found.between[0]
    for row in range(len(table)):
        lo[row] = at + columns["skip"][row]
        at = lo[row] + columns["width"][row]
        assert at == table["hi"][row]
    assert (lo == table["lo"]).all()
    for name in ("status", "certified", "overhead", "evictions", "peak_memory"):
        assert (columns[name] == table[name]).all()
    assert [one[:2] for one in head["holes"]] == [[one.lo, one.hi] for one in holes(found)]
    assert [cliff[0] for cliff in head["cliffs"]] == [cliff.at for cliff in cliffs(found)]
    assert head["cliffs"]
    assert head["gaps"] == [list(gap) for gap in found.gaps]
    assert head["verdicts"]["feasibility"]["reason"] == found.verdict("feasibility").reason


def test_the_reading_of_a_map_is_the_callers() -> None:
    found = all_kinds()
    head, _ = unpack(map_blob(found, thrash_as="infeasible", factor=100.0, tolerance=50.0))
    assert head["cliffs"] == []
    assert head["verdicts"]["cost"]["verdict"] != "refuted"
    assert len(head["holes"]) == len(holes(found, thrash_as="infeasible")) != len(holes(found))


@given(
    st.lists(st.integers(0, EXACT), max_size=20),
    st.lists(st.floats(allow_nan=False), max_size=20),
)
def test_numbers_survive_packing(whole: list[int], real: list[float]) -> None:
    length = min(len(whole), len(real))
    columns = {
        "whole": np.array(whole[:length], np.int64),
        "real": np.array(real[:length], np.float64),
    }
    head, back = unpack(pack({"a": 1}, columns))
    assert head["a"] == 1
    assert all((back[name] == column).all() for name, column in columns.items())


def test_budgets_that_a_browser_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot tell one byte from the next"):
        map_blob(map_of((1, EXACT + 1, "ok", 1.0)))


def test_a_page_is_complete_and_loads_nothing() -> None:
    page = Tags(render([all_kinds(), counterexample()], title="mine"))
    assert not [tags for tags in page.tags if "src" in tags[1] or tags[0] in ("iframe", "object")]
    assert [tags for tags in page.tags if "href" in tags[1] and tags[0] == "link"] == [
        ("link", {"rel": "icon", "href": "data:,"})
    ]
    assert page.texts["title"][0] == "mine"


def test_the_policy_admits_the_pages_own_script_and_style_only() -> None:
    page = render([all_kinds()])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    for name in ("script", "style"):
        (text,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("count", [1, 2])
def test_hostile_names_stay_names(count: int, tmp_path: Path) -> None:
    maps = [all_kinds(trace=HOSTILE, policy=HOSTILE)] * count
    write_page(maps, tmp_path / "page.html", title=HOSTILE if count == 2 else None)
    text = (tmp_path / "page.html").read_bytes().decode()
    page = Tags(text)
    known = {"html", "head", "meta", "link", "title", "style", "body", "header", "a", "nav", "div"}
    known |= {"button", "main", "noscript", "dialog", "h1", "p", "script"}
    assert {tag for tag, _ in page.tags} <= known
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == count + 1


def test_no_script_of_the_page_makes_markup_from_text() -> None:
    folder = Path(render.__code__.co_filename).parent / "assets"
    assert sorted(SCRIPTS) == sorted(path.name for path in folder.glob("*.js"))
    for name in SCRIPTS:
        text = (folder / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", text)


def test_equal_items_give_equal_bytes() -> None:
    assert render([all_kinds(), counterexample()]) == render([all_kinds(), counterexample()])


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        render([])


def test_titles_say_what_is_there() -> None:
    def title(*items: Any) -> str:
        return Tags(render(items)).texts["title"][0]

    assert title(all_kinds()) == "some-trace under dtr"
    assert title(map_of((1, 2, "ok", 1.0), policy="")) == "some-trace"
    assert title(counterexample()) == "dtr breaks feasibility"
    assert title(all_kinds(), all_kinds(), counterexample()) == "2 maps, 1 counterexample"


def test_an_example_holds_both_runs() -> None:
    example = counterexample()
    blob = re.findall(r'class="blob">([^<]*)<', render([example]))[0]
    head, _ = unpack(blob)
    below, above = head["runs"]
    assert (below["budget"], above["budget"]) == example.witness
    assert below["events"][-1]["time"] == example.below.cost
    assert above["events"][-1]["kind"] == "fail"
    choices = [event["choice"] for event in above["events"] if event["choice"]]
    assert len(choices) == example.above.evictions
    assert choices[0]["score"] == 3.0
    assert choices[0]["candidates"] == 2
    storages = {int(root): storage["size"] for root, storage in head["graph"]["storages"].items()}
    for event in below["events"]:
        if event["kind"] == "evict":
            assert event["choice"]["storage"] in event["pool"]
        else:
            assert event["memory"] - event["pinned"] == sum(storages[s] for s in event["pool"])


def test_infinite_scores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    example = counterexample()
    story = tell(example)
    events = [
        dataclasses.replace(event, choice=dataclasses.replace(event.choice, score=math.inf))
        if event.choice
        else event
        for event in story.high.events
    ]
    high = dataclasses.replace(story.high, events=tuple(events))
    monkeypatch.setattr(stepping, "tell", lambda _: dataclasses.replace(story, high=high))
    head, _ = unpack(stepping.example_blob(example))
    choices = [event["choice"] for event in head["runs"][1]["events"] if event["choice"]]
    assert [choice["score"] for choice in choices] == ["∞"] * example.above.evictions


def test_an_example_that_lies_is_refused() -> None:
    example = counterexample()
    below = dataclasses.replace(example.below, evictions=99)
    with pytest.raises(StoredFileError, match=f"counterexample {example.id}: .*evictions"):
        render([dataclasses.replace(example, below=below)])


def test_a_file_is_what_its_first_bytes_say(tmp_path: Path) -> None:
    all_kinds().save(tmp_path / "map.json")
    assert load_item(tmp_path / "map.json") == all_kinds()
    save(counterexample(), tmp_path / "hole.map")
    assert load_item(tmp_path / "hole.map").id == counterexample().id


@pytest.mark.parametrize("data", [b"", b"nonsense", b"{}", b"monofuzz map, format 1\n"])
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(StoredFileError, match="file: "):
        load_item(tmp_path / "file")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MonofuzzError, match="cannot be read: No such file"):
        load_item(tmp_path / "file")
