"""Importers: graphs as NetworkX writes them, tables as CSV and JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monofuzz.errors import TraceError
from monofuzz.trace import Trace, TraceBuilder, interop, load

CSV = """\
name,cost,size,inputs,releases
weight,constant,400,,
hidden,1000,64,weight,
output,500,8,hidden weight,hidden
"""


def by_hand() -> Trace:
    build = TraceBuilder()
    weight = build.constant(400)
    (hidden,) = build.op("hidden", [weight], 64, 1000)
    build.op("output", [hidden, weight], 8, 500)
    build.release(hidden)
    return build.finish()


def test_csv() -> None:
    trace = interop.parse(CSV, file="x.csv", name="x")
    assert trace == by_hand()
    assert trace.op_label == ("constant", "hidden", "output")
    assert trace.meta.name == "x"


def test_csv_without_optional_columns() -> None:
    trace = interop.from_csv("size, name ,cost\n8,a,5\n8,b,5\n")
    assert trace.n_operators == 2
    assert len(trace.args) == 0


def test_json() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "weight", "cost": "constant", "size": 400},
        {"name": "hidden", "cost": 1000, "size": 64, "inputs": ["weight"]},
        {
            "name": "output",
            "cost": 500,
            "size": 8,
            "inputs": ["hidden", "weight"],
            "releases": ["hidden"],
        },
    ]
    assert interop.parse(json.dumps(rows), file="x.json") == by_hand()
    described = {"name": "mine", "model": "a toy", "operators": rows}
    trace = interop.parse(json.dumps(described), file="x.json")
    assert trace == by_hand()
    assert trace.meta.name == "mine"
    kept = interop.parse(json.dumps({**described, "keep": ["hidden"]}), file="x.json")
    assert kept != trace


def test_files_also_compressed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    assert interop.read(path) == by_hand()
    assert load(path) == by_hand()


def test_the_library_tells_them_from_logs(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    for text in (CSV, json.dumps(graph()), json.dumps(graph("links"))):
        path.write_text(text, encoding="utf-8")
        assert load(path).n_operators == 2
    assert not interop.recognises(b'{"INSTRUCTION": "CONSTANT", "NAME": "nodes"}')
    assert not interop.recognises(b'{"nonsense": 1}')


def graph(edges: str = "edges") -> dict[str, Any]:
    made = networkx.DiGraph()
    made.add_node("weight", cost_cpu=0, cost_ram=400)
    made.add_node("hidden", cost_cpu=999.5, cost_ram=64)
    made.add_node("output", cost_cpu=500, cost_ram=8)
    made.add_edge("weight", "hidden")
    made.add_edge("hidden", "output")
    made.add_edge("weight", "output")
    document: dict[str, Any] = networkx.node_link_data(made, edges=edges)
    return document


@pytest.mark.parametrize("edges", ["edges", "links"])
def test_node_link(edges: str) -> None:
    build = TraceBuilder()
    weight = build.constant(400)
    (hidden,) = build.op("hidden", [weight], 64, 1000)
    build.op("output", [weight, hidden], 8, 500)
    build.release(hidden)
    document = graph(edges)
    assert interop.parse(json.dumps(document), file="x.json") == build.finish()


def test_node_link_orders_operators() -> None:
    document = graph()
    document["nodes"].reverse()
    trace = interop.from_node_link(document)
    assert trace.op_label[1:] == ("hidden", "output")
    assert [int(cost) for cost in trace.op_cost] == [0, 1000, 500]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,cost\n", "must name the columns"),
        ("name,cost,size,colour\na,1,1,red\n", "must name the columns"),
        ("name,cost,size\na,1\n", r"x:2: '' is not a whole number \(field size\)"),
        ("name,cost,size\na,1,2,3\n", "x:2: more cells than columns"),
        ("name,cost,size\na,-1,2\n", r"'-1' is not a whole number \(field cost\)"),
        ("name,cost,size\na,1.5,2\n", "'1.5' is not a whole number"),
        ("name,cost,size\na,1,2\na,1,2\n", "x:3: the name 'a' is used twice"),
        ("name,cost,size,inputs\na,1,2,b\n", r"x:2: there is no result 'b'.*field inputs"),
        ("name,cost,size,inputs\na,1,1,\nb,constant,2,a\n", "a constant reads nothing"),
        ("name,cost,size,releases\na,1,2,a a\n", "x:2: tensor 0 has no reference left"),
        ("name,cost,size\n,1,2\n", "an operator without a name"),
        ('name,cost,size\n"a,1,2\n', "not CSV"),
        ("", "must name the columns"),
        ("name,cost,size\n", "the trace is empty"),
        ("{", "not JSON"),
        ("{}", "operators"),
        ("[1]", "object"),
        ('[{"name": "a", "cost": "much", "size": 1}]', r'"constant".*operators\[0\]\.cost'),
        ('[{"name": "a", "cost": 1, "size": -1}]', r"negative.*operators\[0\]\.sizes"),
        ('[{"name": "a", "cost": 1, "size": 1, "colour": 1}]', "colour"),
        ('{"operators": [{"name": "a", "cost": 1, "size": 1}], "keep": ["b"]}', "no result 'b'"),
        ('{"nodes": 1}', 'lists "nodes" and "edges"'),
        ('{"nodes": [], "edges": []}', "the trace is empty"),
        ('{"nodes": [{}], "edges": []}', 'an object with an "id"'),
        ('{"nodes": [{"id": 1, "cost_cpu": 1}], "edges": []}', "cost_ram must be a number"),
        ('{"nodes": [{"id": 1, "cost_cpu": -0.5, "cost_ram": 1}], "edges": []}', "is below 0"),
        (
            '{"nodes": [{"id": 1, "cost_cpu": 1e308, "cost_ram": 1}], "edges": []}',
            r"cost_cpu is below 0 or above 2\*\*48",
        ),
        (
            f'{{"nodes": [{{"id": 1, "cost_cpu": 1, "cost_ram": 1{"0" * 400}}}], "edges": []}}',
            r"cost_ram is below 0 or above 2\*\*48",
        ),
        ('{"directed": false, "nodes": [], "edges": []}', "not directed"),
        (
            '{"nodes": [{"id": 1, "cost_cpu": 1, "cost_ram": 1}],'
            ' "edges": [{"source": 1, "target": 2}]}',
            r"edges\[0\]",
        ),
        (
            '{"nodes": [{"id": 1, "cost_cpu": 1, "cost_ram": 1}],'
            ' "edges": [{"source": 1, "target": 1}]}',
            "cycle",
        ),
        (
            '{"nodes": [{"id": 1, "cost_cpu": 1, "cost_ram": 1},'
            ' {"id": 1, "cost_cpu": 1, "cost_ram": 1}], "edges": []}',
            "used twice",
        ),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(TraceError, match=words) as caught:
        interop.parse(text, file="x")
    assert str(caught.value).startswith("x:")


@given(st.text() | st.text(alphabet='{}[]",:0123abnodesidcost_', max_size=60))
def test_any_text_is_a_trace_or_refused(text: str) -> None:
    try:
        interop.parse(text, file="x")
    except TraceError as refusal:
        assert str(refusal).startswith("x:")  # noqa: PT017
