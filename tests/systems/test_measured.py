"""Reading tables of measurements: what they may look like, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monofuzz.errors import MonofuzzError, TableError
from monofuzz.systems.measured import FAILED, OK, THRASHED, TIMEOUT, Table, read_table, recognises

PLAIN = "budget,outcome,time\n0.5,ok,2.5\n0.75,oom,\n0.5,OK,2.25\n"


def read(text: str | bytes, **how: Any) -> Table:
    return read_table(io.BytesIO(text.encode() if isinstance(text, str) else text), **how)


def equal(one: Table, other: Table) -> bool:
    return (
        one.budgets == other.budgets
        and one.budget.tolist() == other.budget.tolist()
        and one.status.tolist() == other.status.tolist()
        and np.array_equal(one.cost, other.cost, equal_nan=True)
        and one.sweep.tolist() == other.sweep.tolist()
    )


def test_a_table() -> None:
    table = read(PLAIN)
    assert table.budgets == (0.5, 0.75)
    assert table.written == ("0.5", "0.75")
    assert table.budget.tolist() == [0, 1, 0]
    assert table.status.tolist() == [OK, FAILED, OK]
    assert table.cost[[0, 2]].tolist() == [2.5, 2.25]
    assert math.isnan(table.cost[1])
    assert table.costs == "time"
    assert table.sweeps == 0
    assert table.grain[0] == pytest.approx(0.01 / 2.5)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        "\n\n" + PLAIN + "\n\n",
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", ";").replace(".", ","),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", " , "),
        PLAIN.replace("budget,outcome,time", '"Budget","STATUS","Step time (s)"'),
        PLAIN.replace("0.5", '"0.5"'),
        "note,budget,outcome,time\n,0.5,ok,2.5\n,0.75,oom,\n,0.5,ok,2.25\n",
        json.dumps(
            [
                {"budget": 0.5, "outcome": "ok", "time": 2.5},
                {"budget": 0.75, "outcome": "oom"},
                {"budget": "0.5", "outcome": True, "time": 2.25},
            ]
        ),
        '{"budget": 0.5, "outcome": "ok", "time": 2.5}\n\n{"outcome": "oom", "budget": 0.75}\n'
        '{"budget": 0.5, "outcome": "ok", "time": 2.25}\n',
        # The first row lacks a column.
        '[{"budget": 0.50, "outcome": "ok", "time": 2.5}, {"budget": 0.75, "outcome": "oom", '
        '"time": null}, {"budget": 0.5, "outcome": "ok", "time": 2.25, "seen": 3}]',
    ],
)
def test_other_forms_of_the_same(text: str) -> None:
    assert equal(read(text), read(PLAIN))
    assert recognises(text.encode())


def test_from_files(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_text(PLAIN)
    packed.write_bytes(gzip.compress(PLAIN.encode()))
    for path in (plain, packed):
        assert recognises(path)
        assert recognises(str(path))
        assert equal(read_table(path), read(PLAIN))
        assert read_table(path).label == str(path)


def test_from_rows() -> None:
    rows = [
        {"budget": 0.5, "outcome": "ok", "time": 2.5},
        {"budget": 0.75, "outcome": "oom", "time": None},
        {"budget": 0.5, "outcome": "ok", "time": 2.25},
    ]
    assert equal(read_table(rows), read(PLAIN))
    assert equal(read_table(iter(rows)), read(PLAIN))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"name,cost,size,inputs\nw,constant,1,\n",
        b'{"INSTRUCTION": "START"}\n',
        b'[{"name": "a", "cost": 1, "size": 1, "inputs": ["budget"]}]',
        b'{"nodes": [], "edges": []}',
        b"\x8bMFTRACE" + bytes(100),
        bytes(range(256)),
        "größe,zeit\n1,2\n".encode("latin-1"),
    ],
)
def test_what_is_no_table_is_not_taken_for_one(content: bytes) -> None:
    assert not recognises(content)


def test_what_cannot_be_read_is_no_table(tmp_path: Path) -> None:
    assert not recognises(tmp_path)
    assert not recognises(tmp_path / "missing.csv")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(PLAIN.encode())[:20])
    assert not recognises(broken)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["4", "8", "16"], (4, 8, 16)),
        (["0.5", "0.25", "1"], (0.25, 0.5, 1)),
        (["50%", "25%", "100 %"], (0.25, 0.5, 1)),
        (["50%", "0.25", "1.0"], (0.25, 0.5, 1)),
        (["2GiB", "512MiB", "1 GiB"], (2**29, 2**30, 2**31)),
        (["2GiB", "536870912", "1073741824"], (2**29, 2**30, 2**31)),
        (["1e9", "2e9", "3e9"], (1e9, 2e9, 3e9)),
        (["0.5", "0.50", "5e-1"], (0.5,)),
    ],
)
def test_budgets(column: list[str], expected: tuple[float, ...]) -> None:
    assert read("budget,outcome\n" + "".join(f"{b},ok\n" for b in column)).budgets == expected


def test_with_a_peak_ratios_and_bytes_mix() -> None:
    table = read("budget,outcome\n0.5,ok\n1GiB,ok\n75%,ok\n3,ok\n", peak="4GiB")
    assert table.budgets == (3, 2**30, 2 * 2**30, 3 * 2**30)


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("budget,outcome\nnan,ok\n", 2, "budget", "'nan' is not understood"),
        ("budget,outcome\n0.5,ok\ninf,ok\n", 3, "budget", "'inf' is not understood"),
        ("budget,outcome\n1e999,ok\n", 2, "budget", "not a finite number"),
        ("budget,outcome\n-1,ok\n", 2, "budget", "negative"),
        ("budget,outcome\n-0.5,ok\n", 2, "budget", "negative"),
        ("budget,outcome\n,ok\n", 2, "budget", "not understood"),
        ("budget,outcome\n3 apples,ok\n", 2, "budget", "unknown unit"),
        ("budget,outcome\n0.5,ok\n2GiB,ok\n", 3, "budget", "'2GiB' beside '0.5'"),
        ("budget,outcome\n50%,ok\n2GiB,ok\n", 3, "budget", "'2GiB' beside '50%'"),
        ("budget,outcome\n50%,ok\n1,ok\n", 3, "budget", "'1' beside '50%'"),
        ("budget,outcome\n0.5,maybe\n", 2, "outcome", "'maybe' is no outcome"),
        ("budget,outcome\n0.5,ook\n", 2, "outcome", "did you mean ok"),
        ("budget,outcome\n0.5,\n", 2, "outcome", "'' is no outcome"),
        ("budget,time\n0.5,nan\n", 2, "time", "'nan' is not a finite number above 0"),
        ("budget,time\n0.5,inf\n", 2, "time", "not a finite number above 0"),
        ("budget,time\n0.5,0\n", 2, "time", "not a finite number above 0"),
        ("budget,time\n0.5,-3\n", 2, "time", "not a finite number above 0"),
        ("budget,time\n0.5,1_000\n", 2, "time", "not a finite number above 0"),
        ("budget,time\n0.5,fast\n", 2, "time", "'fast' is not a finite"),
        ("budget,time\n0.5,\n", 2, "time", "the time is missing"),
        ("budget,time\n0.5,1,2\n", 2, None, "3 cells, but the first line names 2 columns"),
        ("budget,time\n0.5\n", 2, None, "1 cells"),
        ("budget,time,time\n0.5,1,2\n", 1, None, "'time' is there twice"),
        ("budget,time,seconds\n0.5,1,2\n", 1, None, "several columns could be the time"),
        ("budget,outcome,status\n0.5,ok,ok\n", 1, None, "mean the same"),
        ("budget,memory\n0.5,1\n", 1, None, "neither a column 'outcome' nor one 'time'"),
        ("memory,time\n0.5,1\n", 1, None, "no column 'budget'; the columns are memory, time"),
        ("budget,time,sweep\n0.5,1,\n", 2, "sweep", "the sweep is missing"),
        ("budget,outcome\n", None, None, "nothing was measured"),
        ('budget,outcome\n0.5,"ok\n', None, None, "not CSV"),
        ("", None, None, "empty"),
        ("\n\n", 1, None, "empty"),
        ("[]", None, None, "nothing was measured"),
        ("[1]", None, "[0]", "a row is an object"),
        ('[{"budget": NaN}]', None, None, "not JSON"),
        ('[{"budget": -1, "outcome": "ok"}]', None, "[0].budget", "negative"),
        ('{"budget": 1, "outcome": "ok"}\n{"budget": 1, "outcome"\n', 2, None, "not JSON"),
        ('{"budget": 1, "outcome": "ok"}\n{"budget": "x", "outcome": "ok"}', 2, "budget", "'x'"),
    ],
)
def test_refusals_say_where(text: str, line: int | None, field: str | None, problem: str) -> None:
    with pytest.raises(TableError) as caught:
        read(text)
    assert problem in str(caught.value)
    if line is not None:
        assert caught.value.line == line
    if field is not None:
        assert caught.value.field == field


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(TableError, match=r"UTF-8") as caught:
        read("budget,outcome,note\n1,ok,\n2,ok,größer\n".encode("latin-1"))
    assert caught.value.line == 3


def test_rows_that_are_none_are_refused() -> None:
    with pytest.raises(TableError, match=r"\[1\].budget.*|field \[1\].budget"):
        read_table([{"budget": 1, "time": 1.0}, {"budget": math.nan, "time": 1.0}])
    with pytest.raises(TableError, match="a row is an object"):
        read_table([(1, 2)])  # type: ignore[list-item]


def test_too_many_budgets_are_refused() -> None:
    text = "budget,time\n" + "".join(f"{i},1\n" for i in range(30_000))
    with pytest.raises(TableError, match="more than 20,000 different budgets"):
        read(text)


def test_outcome_words() -> None:
    words = {
        OK: ["ok", "Success", "PASSED", "completed", "true"],
        FAILED: ["oom", "failed", "FAIL", "error", "crashed", "killed", "out of memory", "false"],
        THRASHED: ["thrashed"],
        TIMEOUT: ["timeout", "timed out"],
    }
    text = "budget,outcome\n" + "".join(f"1, {w} \n" for ws in words.values() for w in ws)
    expected = [code for code, ws in words.items() for _ in ws]
    assert read(text).status.tolist() == expected


def test_the_time_of_a_failed_run_is_not_read() -> None:
    table = read("budget,outcome,time\n1,oom,-\n1,timeout,nan\n1,ok,\n1,ok,3\n")
    assert np.isnan(table.cost).tolist() == [True, True, True, False]


def test_throughput_is_better_when_larger() -> None:
    table = read("budget,throughput\n1,4\n2,8\n")
    assert table.cost.tolist() == [1 / 4, 1 / 8]


def test_any_column_can_be_the_cost() -> None:
    text = "budget,time,Peak MB\n0.05,1,1145\n0.1,1,508\n"
    assert read(text, column="peak mb").cost.tolist() == [1145, 508]
    with pytest.raises(TableError, match="did you mean peak mb"):
        read(text, column="peak")


def test_sweeps_pair_runs_unless_their_names_only_number_the_runs() -> None:
    assert read("budget,time,sweep\n1,1,a\n2,1,a\n1,1,b\n2,1,b\n").sweeps == 2
    assert read("budget,time,sweep\n1,1,a\n1,1,a\n2,1,b\n2,1,b\n").sweeps == 2
    assert read("budget,time,run\n1,1,1\n2,1,2\n1,1,3\n2,1,4\n").sweeps == 0
    assert read("budget,time,sweep\n1,1,a\n2,1,a\n1,1,a\n2,1,a\n").sweeps == 0


def test_errors_survive_pickling() -> None:
    error = TableError("bad", file="f", line=3, field="budget")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is TableError
    assert str(again) == str(error) == "f:3: bad (field budget)"


@given(st.one_of(st.text(), st.binary().map(lambda b: b.decode("latin-1"))))
def test_no_text_breaks_it(rest: str) -> None:
    for text in (rest, "budget,outcome,time\n" + rest, '[{"budget": 1, "outcome": "ok"' + rest):
        data = text.encode("utf-8", "surrogatepass")
        recognises(data)
        try:
            table = read(data)
        except MonofuzzError:
            continue
        assert len(table.budget) == len(table.status) == len(table.cost) > 0
        assert list(table.budgets) == sorted(set(table.budgets))
