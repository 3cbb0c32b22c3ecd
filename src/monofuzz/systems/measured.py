"""Tables of measurements from a real system: a run a row, its budget, how it ended, its time.

CSV (with commas, semicolons or tabs), a JSON list or JSON lines, told apart by content and
described in docs/how-to/measured-curves.md. Files are hostile until read: each refusal is a
`TableError` with file, line and field.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import msgspec
import numpy as np

from monofuzz import budget as _budget
from monofuzz.errors import BudgetError, TableError, TraceError, UsageError, nearest
from monofuzz.trace.files import read_content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from monofuzz.trace.files import Source

__all__ = ["FAILED", "OK", "THRASHED", "TIMEOUT", "Table", "read_table", "recognises"]

OK, FAILED, THRASHED, TIMEOUT = range(4)

MAX_BUDGETS: Final = 20_000
"""Most different budgets of a table; nobody measures more, but a column may be the wrong one."""

_WORDS: Final = {
    OK: "ok success succeeded pass passed completed complete finished done true yes",
    FAILED: "oom fail failed failure error crash crashed killed false no",
    THRASHED: "thrashed thrash",
    TIMEOUT: "timeout timed-out timedout",
}
_OUTCOMES: Final = {word: code for code, words in _WORDS.items() for word in words.split()} | {
    "out of memory": FAILED,
    "out-of-memory": FAILED,
    "timed out": TIMEOUT,
}
_OUTCOME_COLUMNS: Final = ("outcome", "status", "result")
_SWEEP_COLUMNS: Final = ("sweep", "run")
_COST_COLUMN: Final = re.compile(
    r"(?:step[ _]?)?(?:time|seconds|duration|runtime|latency|cost|throughput)(?:[ _(\[].*)?"
)
_PACKED: Final = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_SNIFFED: Final = 2**16
_NO_ROWS: Final = "there are no rows: nothing was measured"


@dataclass(frozen=True)
class Table:
    """The rows of a table, a run each, as arrays; budgets ascend and each occurs once.

    ``label`` is the file's name; ``budgets`` are on one scale, and ``written`` is how the table
    writes them. Of each run, ``budget`` is the index of its budget, ``status`` one of `OK`,
    `FAILED`, `THRASHED`, `TIMEOUT`, ``cost`` any positive number of which less is better (NaN if
    there is none), ``grain`` the relative step in which it was written down, and ``sweep`` the
    index of its sweep. ``sweeps`` counts those, 0 if runs are not paired. ``costs``: the name of
    the column of costs, "" without one.
    """

    label: str
    budgets: tuple[float, ...]
    written: tuple[str, ...]
    budget: NDArray[np.intp]
    status: NDArray[np.int8]
    cost: NDArray[np.float64]
    grain: NDArray[np.float64]
    sweep: NDArray[np.intp]
    sweeps: int
    costs: str


def recognises(source: str | os.PathLike[str] | bytes) -> bool:
    """Whether this is a table of measurements, rather than a trace: it has a column ``budget``.

    For bytes, whether a file with that content would be one. False for what cannot be read.
    """
    if not isinstance(source, bytes):
        try:
            with Path(source).open("rb") as stream:
                source_head = stream.read(_SNIFFED)
            if source_head.startswith(_PACKED):
                source_head = read_content(source).data
        except (OSError, ValueError, TraceError):
            return False
        return recognises(source_head)
    head = source[:_SNIFFED].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith((b"{", b"[")):
        first = head.partition(b"}")[0]
        return re.search(rb'"budget"\s*:', first, re.IGNORECASE) is not None
    line = head.splitlines()[0].decode(errors="replace") if head else ""
    return "budget" in _header(line)[0]


def read_table(
    source: Source | Iterable[Mapping[str, Any]],
    *,
    column: str | None = None,
    rising: bool = False,
    peak: _budget.Budget | None = None,
) -> Table:
    """The table in a file (a path or an open file), or of rows that are mappings.

    ``column`` names the column of costs, if it is not the one whose name says so, and ``rising``
    that more of it is better. ``peak`` is the budget that ratios refer to, needed only where ratios
    and bytes are mixed. Raises `TableError`.
    """
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        try:
            content = read_content(cast("Source", source))
        except TraceError as error:
            raise TableError(error.problem, file=error.file) from None
        try:
            text = content.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.data.count(b"\n", 0, error.start) + 1
            raise TableError(
                "not UTF-8 text; save the table as UTF-8", file=content.label, line=line
            ) from None
        lines = _Lines(content.label, text)
    elif isinstance(source, Iterable):
        lines = _Lines("", source)
    else:
        raise UsageError(f"a table is a file or a list of rows, not {source!r:.80}")
    return _Reader(lines, column, peak, rising=rising).read()


class _Lines:
    """The rows of a table as dictionaries of text, with where each one stands."""

    def __init__(self, label: str, content: str | Iterable[Mapping[str, Any]]) -> None:
        self.label = label
        self.line: int | None = None
        self.place = ""
        self.columns: list[str] = []
        self.decimal_comma = False
        if not isinstance(content, str):
            self._rows: Iterator[list[str]] = self._of_mappings(self._numbered(content))
        elif content.lstrip().startswith("["):
            try:
                listed = msgspec.json.decode(content)
            except (msgspec.DecodeError, RecursionError) as error:
                self.refuse(f"not JSON: {error}")
            self._rows = self._of_mappings(self._numbered(listed))
        elif content.lstrip().startswith("{"):
            self._rows = self._of_mappings(self._json_lines(content))
        else:
            self._rows = self._of_csv(content)

    def __iter__(self) -> Iterator[list[str]]:
        """The cells of each row, in the order of ``columns``."""
        return self._rows

    def refuse(self, problem: str, field: str | None = None) -> NoReturn:
        if self.place:
            field = self.place if field is None else f"{self.place}.{field}"
        raise TableError(problem, file=self.label or None, line=self.line, field=field)

    def _of_csv(self, text: str) -> Iterator[list[str]]:
        lines = io.StringIO(text, newline="")
        first = next((line for line in lines if line.strip()), "")
        skipped = text[: text.find(first)].count("\n") if first else 0
        self.columns, delimiter = _header(first)
        self.line = skipped + 1
        if not first:
            self.refuse("the file is empty")
        self._check_columns()
        self.decimal_comma = delimiter == ";"
        return self._csv_rows(csv.reader(lines, delimiter=delimiter, strict=True), self.line)

    def _csv_rows(self, reader: Any, skipped: int) -> Iterator[list[str]]:
        width = len(self.columns)
        try:
            for cells in reader:
                self.line = skipped + reader.line_num
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != width:
                    self.refuse(f"{len(cells)} cells, but the first line names {width} columns")
                yield cells
        except csv.Error as error:
            self.line = skipped + reader.line_num
            self.refuse(f"not CSV: {error}")

    def _json_lines(self, text: str) -> Iterator[Any]:
        decoder = msgspec.json.Decoder()
        for number, line in enumerate(text.split("\n"), 1):
            self.line = number
            if line.strip():
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, RecursionError) as error:
                    self.refuse(f"not JSON: {error}")

    def _numbered(self, rows: Iterable[Any]) -> Iterator[Any]:
        for number, row in enumerate(rows):
            self.place = f"[{number}]"
            yield row

    def _of_mappings(self, rows: Iterator[Any]) -> Iterator[list[str]]:
        listed: list[tuple[int | None, str, dict[str, Any]]] = []
        names: dict[str, str] = {}
        for row in rows:
            if not isinstance(row, Mapping):
                self.refuse('a row is an object such as {"budget": 0.5, "outcome": "ok"}')
            for name in row:
                names.setdefault(name, str(name).strip().lower())
            listed.append((self.line, self.place, {names[name]: row[name] for name in row}))
        if not listed:
            self.refuse(_NO_ROWS)
        self.line, self.place = listed[0][:2]
        self.columns = list(names.values())
        self._check_columns()
        return self._mapped_rows(listed)

    def _mapped_rows(
        self, listed: list[tuple[int | None, str, dict[str, Any]]]
    ) -> Iterator[list[str]]:
        for self.line, self.place, named in listed:
            yield [_as_text(named.get(name)) for name in self.columns]

    def _check_columns(self) -> None:
        seen: set[str] = set()
        for name in self.columns:
            if name in seen:
                self.refuse(f"the column {name!r:.80} is there twice")
            seen.add(name)
        if "budget" not in self.columns:
            listed = ", ".join(self.columns)
            self.refuse(f"there is no column 'budget'; the columns are {listed:.200}")


class _Reader:
    """Turns rows of text into a table, and refuses what is none."""

    def __init__(
        self,
        lines: _Lines,
        column: str | None,
        peak: _budget.Budget | None,
        *,
        rising: bool,
    ) -> None:
        self._lines = lines
        self._rising = rising
        self._column = None if column is None else column.strip().lower()
        self._peak = None if peak is None else _budget.parse(peak, None)
        self._budgets: dict[str, tuple[int, str, int | None, str]] = {}

    def read(self) -> Table:
        lines = self._lines
        outcome, cost, sweep = self._which_columns()
        at_budget = lines.columns.index("budget")
        budget: list[int] = []
        status: list[int] = []
        costs: list[float] = []
        sweeps: list[str] = []
        decimals = 0
        for cells in lines:
            budget.append(self._budget_number(cells[at_budget]))
            ended = OK if outcome is None else self._outcome(cells[outcome], outcome)
            status.append(ended)
            value = math.nan
            if cost is not None and ended == OK:
                text = cells[cost].strip()
                if text:
                    value = self._cost(text, cost)
                    fraction = text.partition(",")[2] or text.partition(".")[2]
                    # Exponents and long fractions are as good as exact.
                    decimals = max(decimals, len(fraction) if fraction.isdigit() else 0)
                elif outcome is None:
                    lines.refuse(
                        "the time is missing; a run without one needs a column 'outcome'",
                        lines.columns[cost],
                    )
            costs.append(value)
            sweeps.append("" if sweep is None else self._sweep(cells[sweep], sweep))
        if not budget:
            lines.refuse(_NO_ROWS)
        named = "" if cost is None else lines.columns[cost]
        return self._table(budget, status, costs, sweeps, decimals, named)

    def _which_columns(self) -> tuple[int | None, int | None, int | None]:
        """Where outcome, cost and sweep stand."""
        lines, columns = self._lines, self._lines.columns
        if self._column is None:
            found = [name for name in columns if _COST_COLUMN.fullmatch(name)]
            if len(found) > 1:
                lines.refuse(
                    f"several columns could be the time ({', '.join(found)}); name one with "
                    "--column (column=)"
                )
            cost = columns.index(found[0]) if found else None
        else:
            if self._column not in columns:
                hint = nearest(self._column, columns) or f"; the columns are {', '.join(columns)}"
                lines.refuse(f"there is no column {self._column!r:.80}{hint:.200}")
            cost = columns.index(self._column)
        outcome = self._one_of(_OUTCOME_COLUMNS)
        if cost is None and outcome is None:
            lines.refuse(
                "there is neither a column 'outcome' nor one 'time' (or 'throughput'); the columns "
                f"are {', '.join(columns):.200}"
            )
        return outcome, cost, self._one_of(_SWEEP_COLUMNS)

    def _one_of(self, names: tuple[str, ...]) -> int | None:
        columns = self._lines.columns
        found = [name for name in names if name in columns and name != self._column]
        if len(found) > 1:
            self._lines.refuse(f"the columns {' and '.join(found)} mean the same; keep one of them")
        return columns.index(found[0]) if found else None

    def _budget_number(self, text: str) -> int:
        """A number for each budget that is written differently, in the order of appearance."""
        text = text.strip()
        if self._lines.decimal_comma and text.count(",") == 1:
            text = text.replace(",", ".")
        if text not in self._budgets:
            try:
                _budget.parse(text, self._peak or 1)
            except BudgetError as error:
                self._lines.refuse(str(error), "budget")
            if len(self._budgets) == MAX_BUDGETS:
                self._lines.refuse(
                    f"more than {MAX_BUDGETS:,} different budgets; round them, or split the table",
                    "budget",
                )
            line, place = self._lines.line, self._lines.place
            self._budgets[text] = (len(self._budgets), _kind(text), line, place)
        return self._budgets[text][0]

    def _outcome(self, text: str, at: int) -> int:
        code = _OUTCOMES.get(text.strip().lower())
        if code is None:
            words = [next(iter(words.split())) for words in _WORDS.values()]
            hint = nearest(text.strip(), list(_OUTCOMES)) if text.strip() else ""
            self._lines.refuse(
                f"{text.strip()!r:.80} is no outcome; write {', '.join(words[:-1])} or "
                f"{words[-1]}{hint}",
                self._lines.columns[at],
            )
        return code

    def _cost(self, text: str, at: int) -> float:
        if self._lines.decimal_comma and text.count(",") == 1:
            text = text.replace(",", ".")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        name = self._lines.columns[at]
        if not (math.isfinite(value) and 1e-150 < value < 1e150) or "_" in text:
            self._lines.refuse(f"{text!r:.80} is not a finite number above 0", name)
        return value

    def _sweep(self, text: str, at: int) -> str:
        if not text.strip():
            self._lines.refuse("the sweep is missing", self._lines.columns[at])
        return text.strip()

    def _table(
        self,
        budget: list[int],
        status: list[int],
        costs: list[float],
        sweeps: list[str],
        decimals: int,
        named: str,
    ) -> Table:
        values = self._on_one_scale()
        levels = sorted(set(values))
        position = {value: i for i, value in enumerate(levels)}
        written: dict[int, str] = {}
        for text, value in zip(self._budgets, values, strict=True):
            written.setdefault(position[value], text)
        cost = np.array(costs)
        grain = 10.0**-decimals / cost
        names = {name: i for i, name in enumerate(dict.fromkeys(sweeps))}
        at = np.array([position[value] for value in values], np.intp)[np.array(budget, np.intp)]
        sweep = np.array([names[name] for name in sweeps], np.intp)
        return Table(
            label=self._lines.label or "measurements",
            budgets=tuple(levels),
            written=tuple(written[i] for i in range(len(levels))),
            budget=at,
            status=np.array(status, np.int8),
            cost=1 / cost if self._rising or named.startswith("throughput") else cost,
            grain=grain,
            sweep=sweep,
            # A name for each run only numbers the runs; one name for all divides nothing.
            sweeps=len(names) if 1 < len(names) < len(sweep) else 0,
            costs=named,
        )

    def _on_one_scale(self) -> list[float]:
        """The budgets as numbers that can be compared."""
        if self._peak is not None:
            return [_budget.parse(text, self._peak) for text in self._budgets]
        firsts: dict[str, tuple[str, int | None, str]] = {}
        for text, (_, kind, line, place) in self._budgets.items():
            firsts.setdefault(kind, (text, line, place))
        ratios, sizes = firsts.keys() & {"%", "plain"}, firsts.keys() & {"unit"}
        if (ratios and sizes) or {"%", "whole"} <= firsts.keys():
            one, other = list(firsts.values())[:2]
            self._lines.line, self._lines.place = other[1:]
            self._lines.refuse(
                f"{other[0]!r} beside {one[0]!r}: budgets are ratios or bytes, not both; write all "
                "in one way, or say the peak with --peak (peak=)",
                "budget",
            )
        if sizes:
            return [_budget.parse(text, None) for text in self._budgets]
        return [
            float(Decimal(text[:-1].strip()) / 100) if text.endswith("%") else _plain(text)
            for text in self._budgets
        ]


def _kind(text: str) -> str:
    """How a budget is written; those of one kind can be compared."""
    if text.endswith("%"):
        return "%"
    if text[-1].isalpha():
        return "unit"
    return "plain" if _budget.is_ratio(text) else "whole"


def _plain(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


def _header(line: str) -> tuple[list[str], str]:
    """The columns that a first line names, and what stands between them."""
    found: list[tuple[list[str], str]] = []
    for delimiter in ",;\t":
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        found.append(([cell.strip().lower() for cell in cells], delimiter))
    with_budget = [one for one in found if "budget" in one[0]]
    return max(with_budget or found or [([], ",")], key=lambda one: len(one[0]))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"{value:.1f}"
    return str(value).lower() if isinstance(value, bool) else str(value)
