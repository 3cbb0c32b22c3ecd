"""Traces from what people already have: graphs in JSON, tables in CSV or JSON.

Three forms, told apart by content and described in docs/trace-formats.md: the node-link JSON of
NetworkX with ``cost_cpu`` and ``cost_ram`` on its nodes, as the graphs of Checkmate and Moccasin
have them; a list of operators as JSON; the same as CSV. Files are hostile until read: each refusal
is a `TraceError` with file, line or field.
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from monofuzz.errors import TraceError
from monofuzz.trace.builder import TraceBuilder
from monofuzz.trace.dtrlog import MAX_LINE_BYTES
from monofuzz.trace.files import read_content
from monofuzz.trace.model import MAX_COMMANDS, MAX_COST, MAX_OPERATORS, MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from monofuzz.trace.files import Source
    from monofuzz.trace.model import Trace

__all__ = ["from_csv", "from_json", "from_node_link", "parse", "read", "recognises"]

COLUMNS: Final = ("name", "cost", "size", "inputs", "releases")
_OPTIONAL: Final = frozenset({"inputs", "releases"})
_SNIFFED: Final = 2**16


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    """One operator: ``cost`` in nanoseconds (or "constant"), ``size`` in bytes."""

    name: str
    cost: int | str
    size: int
    inputs: list[str] = []
    releases: list[str] = []


class _Rows(msgspec.Struct, forbid_unknown_fields=True):
    operators: list[_Row]
    name: str = ""
    model: str = ""
    keep: list[str] | None = None


def recognises(data: bytes) -> bool:
    """Whether the content of a file looks like one of the three forms, rather than a DTR log."""
    head = data[:_SNIFFED].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"{"):
        marks = (b'"nodes"', b'"operators"', b'"cost_cpu"')
        return b'"INSTRUCTION"' not in head and any(mark in head for mark in marks)
    if head.startswith(b"["):
        return b'"cost"' in head
    first = head.partition(b"\n")[0].decode(errors="replace")
    return {"name", "cost", "size"} <= {column.strip().strip('"') for column in first.split(",")}


def read(source: Source) -> Trace:
    """The trace in a file of one of the three forms, plain or compressed. Raises `TraceError`."""
    content = read_content(source)
    return parse(content.data, file=content.label, name=content.stem)


def parse(data: bytes | str, *, file: str, name: str = "") -> Trace:
    """The trace in a text of one of the three forms."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError("the file is not UTF-8 text", file=file) from None
    if not text.lstrip().startswith(("{", "[")):
        return from_csv(text, file=file, name=name)
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceError(f"not JSON: {error}", file=file) from None
    if isinstance(document, dict) and "nodes" in document:
        return from_node_link(document, file=file, name=name)
    return from_json(document, file=file, name=name)


# -- a list of operators --------------------------------------------------------------------------


def from_csv(text: str, *, file: str = "CSV", name: str = "") -> Trace:
    """A trace from a table with the columns name, cost, size, inputs and releases.

    The last two hold names between blanks, and may be missing.
    """
    _check_lines(text, file)
    rows: list[tuple[_Row, str]] = []
    reader = csv.DictReader(io.StringIO(text), strict=True, restkey="", restval="")
    try:
        found = [column.strip() for column in reader.fieldnames or ()]
        missing = [c for c in COLUMNS if c not in found and c not in _OPTIONAL]
        unknown = [column for column in found if column not in COLUMNS]
        if missing or unknown or len(set(found)) < len(found):
            raise TraceError(
                "the first line must name the columns: name, cost, size, and inputs and releases "
                "if there are any",
                file=file,
                line=1,
            )
        reader.fieldnames = found
        for cells in reader:
            line = reader.line_num
            if "" in cells:
                raise TraceError("more cells than columns", file=file, line=line)
            row = _Row(
                name=cells["name"].strip(),
                cost=_csv_cost(cells["cost"], file, line),
                size=_csv_integer(cells["size"], "size", file, line),
                inputs=(cells.get("inputs") or "").split(),
                releases=(cells.get("releases") or "").split(),
            )
            rows.append((row, f"line {line}"))
    except csv.Error as error:
        raise TraceError(f"not CSV: {error}", file=file, line=reader.line_num) from None
    return _build(rows, None, file=file, meta={"name": name, "source": file})


def _check_lines(text: str, file: str) -> None:
    """Neither too many lines nor too long ones: both would take long to be refused."""
    if text.count("\n") > MAX_OPERATORS + 1:
        raise TraceError(f"more than {MAX_OPERATORS:,} lines", file=file)
    for number, line in enumerate(io.StringIO(text), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise TraceError(
                f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB", file=file, line=number
            )


def _csv_cost(text: str, file: str, line: int) -> int | str:
    return text.strip() if text.strip() == "constant" else _csv_integer(text, "cost", file, line)


def _csv_integer(text: str, column: str, file: str, line: int) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) < 20):
        raise TraceError(
            f"{stripped[:40]!r} is not a whole number", file=file, line=line, field=column
        )
    return int(stripped)


def from_json(document: Any, *, file: str = "JSON", name: str = "") -> Trace:
    """A trace from ``{"operators": [{"name", "cost", "size", "inputs", "releases"}, …]}``.

    ``keep`` beside ``operators`` lists the results that must be there at the end; by default that
    is whatever was not released. The list of operators may also stand alone.
    """
    if isinstance(document, list):
        document = {"operators": document}
    try:
        rows = msgspec.convert(document, type=_Rows)
    except msgspec.ValidationError as error:
        raise TraceError(str(error)[:300], file=file) from None
    _check_count(len(rows.operators), file)
    listed = [(row, f"operators[{i}]") for i, row in enumerate(rows.operators)]
    meta = {"name": rows.name or name, "model": rows.model, "source": file}
    return _build(listed, rows.keep, file=file, meta=meta)


def _check_count(count: int, file: str) -> None:
    if count > MAX_OPERATORS:
        raise TraceError(f"more than {MAX_OPERATORS:,} operators", file=file)


def _build(
    rows: Iterable[tuple[_Row, str]], keep: list[str] | None, *, file: str, meta: dict[str, Any]
) -> Trace:
    """The operators in order; releases happen behind the operator that lists them."""
    build = TraceBuilder(recorder="imported", **meta)
    known: dict[str, int] = {}

    def tensor(wanted: str, place: str, field: str) -> int:
        if wanted not in known:
            _refuse(f"there is no result {wanted!r:.80} before this operator", place, field)
        return known[wanted]

    def _refuse(problem: str, place: str, field: str) -> NoReturn:
        line = int(place[5:]) if place.startswith("line ") else None
        where = f"{place}.{field}" if place.startswith("operators") else field
        raise TraceError(problem, file=file, line=line, field=where)

    for row, place in rows:
        if not row.name:
            _refuse("an operator without a name", place, "name")
        if row.name in known:
            _refuse(f"the name {row.name!r:.80} is used twice", place, "name")
        arguments = [tensor(wanted, place, "inputs") for wanted in row.inputs]
        try:
            if row.cost == "constant":
                if arguments:
                    _refuse("a constant reads nothing", place, "inputs")
                known[row.name] = build.constant(row.size)
            elif isinstance(row.cost, str):
                _refuse('a cost is a whole number of nanoseconds, or "constant"', place, "cost")
            else:
                [known[row.name]] = build.op(row.name, arguments, row.size, row.cost)
            for wanted in row.releases:
                build.release(tensor(wanted, place, "releases"))
        except TraceError as error:
            if error.file is None:
                _refuse(error.problem, place, error.field or "name")
            raise
    try:
        if keep is None:
            return build.finish()
        return build.finish(keep=[tensor(wanted, "", "keep") for wanted in keep])
    except TraceError as error:
        raise error if error.file is not None else error.at(file) from None


# -- graphs ---------------------------------------------------------------------------------------


def from_node_link(document: Any, *, file: str = "JSON", name: str = "") -> Trace:
    """A trace from a directed graph in NetworkX's node-link form.

    Each node is an operator with one result: ``cost_cpu`` is its cost in nanoseconds and
    ``cost_ram`` the bytes of its result; fractions are rounded up. An edge runs from an operator to
    one that reads it, in the order of the edges. Operators run in the topological order that
    prefers the order of the nodes; a result is released after its last use, and results that
    nobody uses are kept. A node without inputs whose ``cost_cpu`` is 0 is a constant.
    """
    nodes = document.get("nodes")
    edges = document.get("edges", document.get("links"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise TraceError('a node-link graph has lists "nodes" and "edges" (or "links")', file=file)
    if document.get("directed") is False:
        raise TraceError("the graph is not directed", file=file, field="directed")
    _check_count(len(nodes), file)
    if len(edges) > MAX_COMMANDS:
        raise TraceError(f"more than {MAX_COMMANDS:,} edges", file=file)
    index: dict[Any, int] = {}
    amounts: list[tuple[int, int]] = []
    for i, node in enumerate(nodes):
        place = f"nodes[{i}]"
        if not isinstance(node, dict) or not isinstance(node.get("id"), int | str):
            raise TraceError('a node is an object with an "id"', file=file, field=place)
        if node["id"] in index:
            raise TraceError(f"the id {node['id']!r:.80} is used twice", file=file, field=place)
        index[node["id"]] = i
        amounts.append(
            (
                _amount(node, "cost_cpu", MAX_COST, file, place),
                _amount(node, "cost_ram", MAX_SIZE, file, place),
            )
        )
    inputs: list[list[int]] = [[] for _ in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for i, edge in enumerate(edges):
        place = f"edges[{i}]"
        ends = [edge.get(end) for end in ("source", "target")] if isinstance(edge, dict) else []
        known = [index[e] for e in ends if isinstance(e, int | str) and e in index]
        if len(known) != 2:
            raise TraceError(
                'an edge has a "source" and a "target", the ids of two nodes',
                file=file,
                field=place,
            )
        inputs[known[1]].append(known[0])
        users[known[0]].append(known[1])
    order = _order(inputs, users, file)

    build = TraceBuilder(name=name, source=file, recorder="imported")
    place_in_order = {node: at for at, node in enumerate(order)}
    last_use = [max((place_in_order[user] for user in used), default=-1) for used in users]
    tensors: dict[int, int] = {}
    try:
        for at, node in enumerate(order):
            cost, size = amounts[node]
            label = str(nodes[node].get("name", nodes[node]["id"]))
            if not inputs[node] and cost == 0:
                tensors[node] = build.constant(size, name=label)
                continue
            arguments = [tensors[one] for one in inputs[node]]
            [tensors[node]] = build.op(label, arguments, size, cost)
            for one in dict.fromkeys(inputs[node]):
                if last_use[one] == at and (inputs[one] or amounts[one][0]):
                    build.release(tensors[one])
        return build.finish()
    except TraceError as error:
        raise error.at(file) from None


def _amount(node: dict[str, Any], key: str, limit: int, file: str, place: str) -> int:
    value = node.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TraceError(f"{key} must be a number", file=file, field=place)
    if not 0 <= value <= limit:
        raise TraceError(f"{key} is below 0 or above 2**48", file=file, field=place)
    return math.ceil(value)


def _order(inputs: list[list[int]], users: list[list[int]], file: str) -> list[int]:
    """The topological order that prefers the order of the nodes."""
    import heapq

    missing = [len(reads) for reads in inputs]
    ready = [node for node, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for user in users[node]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(inputs):
        raise TraceError("the graph has a cycle: its operators have no order", file=file)
    return order
