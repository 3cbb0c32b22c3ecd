"""Bad input gets one sentence on standard error and exit code 2, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import HOLE, Run

BAD_POLICIES = {
    "dtrr": "dtr",
    "": "policy",
    "nbhd-penalty:c=1": "no parameter 'c'",
    "nbhd-penalty:b=much": "not a number",
    "nbhd-penalty:b=nan": "out of range",
    "nbhd-penalty:b": "KEY=VALUE",
    "dtr:b=1": "no parameter 'b'",
}
BAD_BUDGETS = {
    "nan": "nan",
    "inf": "inf",
    "-1": "negative",
    "-0.5": "negative",
    "much": "much",
    "1e999": "1e999",
    "99999999999999999999999": "too large",
    "3 apples": "apples",
    "": "''",
}
BAD_TRACES = {
    "no-such-trace": "no trace or file 'no-such-trace'",
    "dtr-resnet23": "dtr-resnet32",
    "dtr-resnet32": "traces fetch dtr",
    "no/such/file.log": "no such file",
}
BAD_FILES = {
    "empty": (b"", "empty"),
    "binary": (bytes(range(256)) * 8, "binary"),
    "text": (b"hello\n", "JSON"),
    "instruction": (b'{"INSTRUCTION": "JUMP"}\n', "JUMP"),
    "undefined": (
        b'{"INSTRUCTION": "CALL", "NAME": "f", "ARGS": ["x"], "RESULT": ["y"], "TIME": "1"}\n'
        b'{"INSTRUCTION": "MEMORY", "NAME": "y", "MEMORY": "1"}\n'
        b'{"INSTRUCTION": "ALIAS", "NAME": "y", "ALIAS": "-1"}\n',
        "argument x is not defined",
    ),
    "negative": (
        b'{"INSTRUCTION": "CONSTANT", "NAME": "x"}\n'
        b'{"INSTRUCTION": "MEMORY", "NAME": "x", "MEMORY": "-1"}\n',
        "negative",
    ),
}
RUNNERS = {
    "replay": ("-b", "1.0"),
    "map": (),
    "check": (),
}


def refused(run: Run, *args: str | Path) -> str:
    """The sentence with which a command is refused."""
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith("Error: ")
    return sentence


@pytest.mark.parametrize("command", RUNNERS)
@pytest.mark.parametrize("policy", BAD_POLICIES)
def test_policy(run: Run, command: str, policy: str) -> None:
    sentence = refused(run, command, HOLE, "--policy", policy, *RUNNERS[command])
    assert BAD_POLICIES[policy] in sentence


@pytest.mark.parametrize("command", RUNNERS)
@pytest.mark.parametrize("trace", BAD_TRACES)
def test_trace(run: Run, command: str, trace: str) -> None:
    sentence = refused(run, command, trace, "-p", "dtr", *RUNNERS[command])
    assert BAD_TRACES[trace] in sentence


@pytest.mark.parametrize("command", [*RUNNERS, "traces info", "traces add"])
@pytest.mark.parametrize("kind", BAD_FILES)
def test_file(run: Run, tmp_path: Path, command: str, kind: str) -> None:
    content, expected = BAD_FILES[kind]
    file = tmp_path / "bad.log"
    file.write_bytes(content)
    rest = ("-p", "dtr", *RUNNERS[command]) if command in RUNNERS else ("--engine", "interpreted")
    sentence = refused(run, *command.split(), file, *rest)
    assert "bad.log" in sentence
    assert expected in sentence


@pytest.mark.parametrize("budget", BAD_BUDGETS)
def test_budget(run: Run, budget: str) -> None:
    assert BAD_BUDGETS[budget] in refused(run, "replay", HOLE, "-p", "dtr", f"--budget={budget}")


@pytest.mark.parametrize("command", ["map", "check"])
@pytest.mark.parametrize("budget", BAD_BUDGETS)
@pytest.mark.parametrize("end", ["lower", "upper"])
def test_range(run: Run, command: str, budget: str, end: str) -> None:
    ends = (budget, "1.0") if end == "lower" else ("0.1", budget)
    sentence = refused(run, command, HOLE, "-p", "dtr", "--between", *ends)
    assert BAD_BUDGETS[budget] in sentence


@pytest.mark.parametrize("command", ["map", "check"])
@pytest.mark.parametrize("ends", [("0.5", "0.5"), ("0.6", "0.5"), ("20", "10")])
def test_empty_range(run: Run, command: str, ends: tuple[str, str]) -> None:
    assert "empty" in refused(run, command, HOLE, "-p", "dtr", "--between", *ends)


@pytest.mark.parametrize(
    "options",
    [
        ("--limit", "0"),
        ("--limit", "nan"),
        ("--limit", "much"),
        ("--timeout", "0"),
        ("--timeout", "soon"),
        ("--align", "0"),
        ("--align", "1.5"),
        ("--jobs", "0"),
        ("--max-runs", "0"),
        ("--time", "-1"),
        ("--time", "inf"),
        ("--tolerance", "-1"),
        ("--tolerance", "nan"),
        ("--factor", "1"),
        ("--thrash-as", "something"),
        ("--engine", "steam"),
        ("--between", "0.5"),
        ("--plot", "map.bmp"),
        ("--plot", "no/such/folder/map.png"),
        ("--out", "no/such/folder/map"),
        ("--nonsense",),
    ],
    ids=" ".join,
)
def test_option(run: Run, options: tuple[str, ...]) -> None:
    sentence = refused(run, "map", HOLE, "-p", "dtr", *options)
    assert any(word.strip("-") in sentence for word in options)


@pytest.mark.parametrize("command", RUNNERS)
def test_what_is_missing(run: Run, command: str) -> None:
    assert "TRACE" in refused(run, command, "-p", "dtr")
    assert "--policy" in refused(run, command, HOLE, *RUNNERS[command])


def test_no_budget(run: Run) -> None:
    assert "--budget" in refused(run, "replay", HOLE, "-p", "dtr")


def test_unknown_command(run: Run) -> None:
    assert "did you mean replay or report?" in refused(run, "reply")


def test_a_map_file_that_is_none(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "map"
    file.write_text("something else, and precious")
    assert str(file) in refused(run, "map", HOLE, "-p", "dtr", "--out", file)
    assert file.read_text() == "something else, and precious"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "no golden run"),
        ("{}\n", "not a golden record"),
        ("nothing\n", "JSON"),
        (
            '{"trace": "no-such-trace", "policy": "dtr", "budget": 1, "remats": 0}\n',
            "no-such-trace",
        ),
        ('{"log": [], "runs": [{"policy": "dtr", "budget": -1}]}\n', "golden.jsonl:1"),
    ],
)
def test_golden(run: Run, tmp_path: Path, content: str, expected: str) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_text(content)
    assert expected in refused(run, "verify", "--golden", file)


def test_golden_file_that_is_not_there(run: Run) -> None:
    assert "nowhere.jsonl" in refused(run, "verify", "--golden", "nowhere.jsonl")
