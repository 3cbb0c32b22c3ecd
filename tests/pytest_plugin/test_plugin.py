"""The plugin as its users meet it: options, markers, fixtures, failures that can be seen again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

import monofuzz
import monofuzz.suite
from monofuzz.generate.fast import graph
from monofuzz.hunt import hunt_all
from monofuzz.trace import load
from monofuzz.trace.library import list_traces
from tests.pytest_plugin.planners import PLANNER

pytest_plugins = ["pytester"]

LOADED = ("-p", "monofuzz.pytest_plugin")


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What inner runs import and compile is forgotten when they end; this is not."""
    hunt_all(["lru"], max_examples=1)
    graph("free", 2, 0)
    monofuzz.suite.default_places()


class Project:
    """A folder with the planner and tests of it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makepyfile(planner=PLANNER)
        pytester.syspathinsert()

    def run(self, *options: str, test: str = "", strict: bool = True) -> pytest.RunResult:
        if test:
            self.pytester.makepyfile(test_it=f"import pytest, planner, monofuzz as mf\n{test}")
        strictly = ["--strict-markers", "--strict-config"] if strict else []
        return self.pytester.runpytest_inprocess(*LOADED, *strictly, *options)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Inner runs load this plugin, whether monofuzz is installed or not, and no other.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(monofuzz.__file__).parents[1]))
    return Project(pytester)


def suite(marker: str, name: str = "test_it") -> str:
    return (
        f"@pytest.mark.monofuzz({marker})\ndef {name}(monofuzz_case):\n    monofuzz_case.check()\n"
    )


def said(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines + result.errlines)


def command_of(result: pytest.RunResult) -> list[str]:
    (command,) = set(re.findall(r"^E +(pytest test_it.py.*)$", said(result), re.MULTILINE))
    return shlex.split(command)[1:]


class TestASuite:
    def test_asks_for_all_that_ships(self, project: Project) -> None:
        result = project.run("--collect-only", "-q", test=suite("policy='dtr'"))
        shipped = [one.name for one in list_traces() if one.kind == "shipped"]
        assert len(shipped) > 10
        expected = [f"test_it[{name}-feasibility]" for name in [*shipped, "corpus", "generated"]]
        assert [line.partition("::")[2] for line in result.outlines if "::" in line] == expected

    def test_passes(self, project: Project) -> None:
        marker = (
            "runtime=planner.Pager(), trace=['generated', 'demo'], max_runs=50, max_examples=20"
        )
        result = project.run("--junitxml=out.xml", "-v", test=suite(marker))
        result.assert_outcomes(passed=2)
        summary = re.search(
            r"Pager, feasibility: 2 undecided \(nothing found in (.*) runs", said(result)
        )
        assert summary is not None
        cases = ElementTree.parse(project.pytester.path / "out.xml").iter("testcase")
        found = [{p.get("name"): p.get("value") for p in case.iter("property")} for case in cases]
        assert [one["trace"] for one in found] == ["generated", "demo"]
        for one in found:
            assert one["policy"] == "Pager"
            assert one["claim"] == "feasibility"
            assert one["verdict"] == "undecided"
            assert one["seed"] == "0"
            assert int(one["runs"] or 0) > 0
            assert 0 < float(one["covered"] or 0) <= 1

    def test_proves_what_can_be_proved(self, project: Project) -> None:
        marker = "policy='dtr', between=(0.9, 1.0), allow_undecided=False, trace='demo'"
        result = project.run(test=suite(marker))
        result.assert_outcomes(passed=1)
        assert "dtr, feasibility: 1 proved" in said(result)

    def test_undecided_fails_if_a_proof_is_asked_for(self, project: Project) -> None:
        marker = "runtime=planner.odd, between=(20, 300), allow_undecided=False"
        result = project.run(test=suite(marker))
        result.assert_outcomes(failed=1)
        assert "odd: feasibility is undecided: every budget was run" in said(result)

    def test_markers_add_up_and_the_nearest_counts(self, project: Project) -> None:
        test = (
            "pytestmark = pytest.mark.monofuzz(trace='generated', max_examples=2, seed=5)\n"
            + suite("runtime=planner.Pager()", "test_a")
            + suite("runtime=planner.Pager(), seed=6, claim='feasibility'", "test_b")
        )
        result = project.run("--junitxml=out.xml", test=test)
        result.assert_outcomes(passed=2)
        xml = (project.pytester.path / "out.xml").read_text()
        assert re.findall(r'name="seed" value="(\d)"', xml) == ["5", "6"]

    def test_policies_of_the_command_line(self, project: Project) -> None:
        options = [
            "--monofuzz-policy",
            "lru",
            "--monofuzz-policy",
            "dtr",
            "--monofuzz-trace",
            "demo",
        ]
        result = project.run(
            "--collect-only", "-q", *options, "--monofuzz-claim", "both",
            test="def test_it(monofuzz_case): monofuzz_case.check()",
        )  # fmt: skip
        for name in ("lru", "dtr"):
            for claim in ("feasibility", "cost"):
                assert f"test_it.py::test_it[{name}-demo-{claim}]" in result.outlines

    def test_the_configuration_file_counts_last(self, project: Project) -> None:
        project.pytester.makeini(
            "[pytest]\nmonofuzz_trace = demo\n  generated\nmonofuzz_seed = 3\n"
            "monofuzz_max_examples = 2\nmonofuzz_policy = lru\nmonofuzz_claim = cost\n"
            "monofuzz_between = 0.9 1.0\n"
        )
        test = "def test_it(monofuzz_case): monofuzz_case.check()\n" + suite(
            "runtime=planner.Pager(), claim='feasibility'", "test_mine"
        )
        result = project.run("--collect-only", "-q", test=test)
        assert [line.partition("::")[2] for line in result.outlines if "::" in line] == [
            "test_it[demo-cost]",
            "test_it[generated-cost]",
            "test_mine[demo-feasibility]",
            "test_mine[generated-feasibility]",
        ]
        result = project.run("--junitxml=out.xml", "-k", "mine", "--monofuzz-trace", "generated")
        result.assert_outcomes(passed=1, deselected=1)
        xml = (project.pytester.path / "out.xml").read_text()
        assert 'name="seed" value="3"' in xml

    def test_the_seed_decides_the_graphs(self, project: Project) -> None:
        test = (
            "def seen(trace, budget):\n    print('GRAPH', trace.meta.name)\n    return True\n"
            + suite("runtime=seen, trace='generated', max_examples=3")
        )

        def graphs(*options: str) -> set[str]:
            result = project.run("-s", *options, test=test)
            return set(re.findall(r"GRAPH (\S+)", said(result)))

        first = graphs()
        assert len(first) == 3
        assert graphs() == first
        assert not graphs("--monofuzz-seed", "1") & first
        assert len(graphs("--monofuzz-max-examples", "5")) == 5


class TestFailures:
    @pytest.mark.parametrize(
        ("what", "claim", "place"),
        [
            ("policy=planner.cheap_first", "feasibility", "generated"),
            ("policy='lru'", "cost", "corpus"),
            ("runtime=planner.greedy", "feasibility", "corpus"),
            ("runtime=planner.greedy", "feasibility", "generated"),
        ],
    )
    def test_a_small_graph_and_the_line_that_shows_it_again(
        self, project: Project, what: str, claim: str, place: str
    ) -> None:
        marker = f"{what}, claim='{claim}', trace='{place}', time=60"
        result = project.run(test=suite(marker))
        result.assert_outcomes(failed=1)
        text = said(result)
        operators = re.search(r"on a graph of (\d+) operators?", text)
        assert operators is not None
        assert int(operators[1]) <= (3 if "policy" in what else 1)
        if "runtime" in what:
            assert "a = op()  # 1 byte; 1 ns" in text
        assert ("more memory fails" if claim == "feasibility" else "more memory costs more") in text
        low, high = (int(b) for b in re.findall(r"^E +at +(\d+) bytes?:", text, re.MULTILINE))
        assert low < high
        command = command_of(result)
        assert command[-2:] == [str(low), str(high + 1)]
        trace = load(command[command.index("--monofuzz-trace") + 1])
        assert trace.n_operators == int(operators[1])
        again = project.run(*command)
        again.assert_outcomes(failed=1)
        assert f"at {high} bytes: " in said(again)

    def test_costs_of_a_runtime(self, project: Project) -> None:
        marker = "runtime=lambda b: abs(b - 50) + 1, between=(0, 100), claim='cost'"
        result = project.run(test=suite(marker))
        result.assert_outcomes(failed=1)
        assert re.search(r"at 50 bytes: ok, cost 1\b", said(result))
        assert "at 51 bytes: ok, cost 2" in said(result)
        assert "on a graph" not in said(result)
        result = project.run(test=suite(f"{marker}, tolerance=100"))
        result.assert_outcomes(passed=1)

    def test_a_runtime_without_traces(self, project: Project) -> None:
        result = project.run(test=suite("runtime=planner.odd, between=(0, 1000)"))
        result.assert_outcomes(failed=1)
        assert "at 332 bytes: ok" in said(result)
        assert "at 333 bytes: out of memory" in said(result)
        again = project.run(*command_of(result))
        again.assert_outcomes(failed=1)

    def test_a_recorded_trace_is_shrunk(self, project: Project) -> None:
        test = (
            "def run(trace, budget):\n"
            "    half = mf.peak_memory(trace) // 2\n"
            "    return trace.n_operators < 2 or budget < half\n"
            + suite("runtime=run, trace='demo', time=60")
        )
        result = project.run(test=test)
        assert "on a graph of 2 operators, shrunk from 178 (first seen on demo)" in said(result)

    def test_without_a_cache_folder(self, project: Project) -> None:
        marker = "runtime=planner.greedy, trace='generated'"
        result = project.run("-p", "no:cacheprovider", test=suite(marker))
        command = command_of(result)
        assert load(command[command.index("--monofuzz-trace") + 1]).n_operators < 5
        project.run("-p", "no:cacheprovider", *command).assert_outcomes(failed=1)

    def test_flaky_is_not_refuted(self, project: Project) -> None:
        test = (
            "seen = set()\n"
            "def run(budget):\n"
            "    first = budget not in seen\n"
            "    seen.add(budget)\n"
            "    return not (first and budget == 50)\n" + suite("runtime=run, between=(0, 100)")
        )
        result = project.run(test=test)
        result.assert_outcomes(failed=1)
        assert "run is flaky: ok at " in said(result)

    def test_nothing_feasible_is_no_success(self, project: Project) -> None:
        never = "runtime=lambda trace, budget: False, trace='generated', max_examples=3"
        for marker in ("runtime=lambda b: False, between=(1, 9)", never):
            result = project.run(test=suite(marker))
            result.assert_outcomes(failed=1)
            assert "no run succeeded, so that nothing was compared" in said(result)

    def test_a_crash_shows_the_users_code_and_where(self, project: Project) -> None:
        test = "def run(trace, budget):\n    return {}[budget]\n" + suite(
            "runtime=run, trace='generated'"
        )
        result = project.run(test=test)
        result.assert_outcomes(failed=1)
        text = said(result)
        assert "KeyError: 1" in text
        assert "while run on free-3-0 ran at budget 1" in text
        assert "explorer.py" not in text


class TestTheFixture:
    def test_asserts(self, project: Project) -> None:
        test = (
            "def test_good(monofuzz):\n"
            "    pager = planner.Pager()\n"
            "    (found,) = monofuzz.assert_monotone(pager, max_examples=5)\n"
            "    assert found.verdict == 'undecided' and found.place == 'generated'\n"
            "    settings = dict(trace='demo', between=(0.9, 1.0), claim='both')\n"
            "    found = monofuzz.assert_monotone('dtr', **settings)\n"
            "    assert [one.claim for one in found] == ['feasibility', 'cost']\n"
            "def test_bad(monofuzz):\n"
            "    with pytest.raises(mf.MonotonicityViolation, match='memory fails') as caught:\n"
            "        monofuzz.assert_monotone(planner.greedy, 'corpus', time=60)\n"
            "    low, high = caught.value.witness.budgets\n"
            "    assert low < high\n"
            "def test_shown(monofuzz):\n"
            "    monofuzz.assert_monotone(planner.odd, between=(0, 1000))\n"
        )
        result = project.run(test=test)
        result.assert_outcomes(passed=2, failed=1)
        command = command_of(result)
        assert command[0] == "test_it.py::test_shown"
        project.run(*command).assert_outcomes(failed=1)

    def test_takes_settings_from_the_marker(self, project: Project) -> None:
        test = (
            "@pytest.mark.monofuzz(between=(0, 300), max_runs=7)\n"
            "def test_it(monofuzz):\n"
            "    (found,) = monofuzz.assert_monotone(planner.odd)\n"
            "    assert found.runs == 7\n"
        )
        project.run(test=test).assert_outcomes(passed=1)


class TestMisuse:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--monofuzz-trace", "demoo"], "there is no trace or file 'demoo'; did you mean demo"),
            (["--monofuzz-trace", "gone.log"], "gone.log: there is no such file"),
            (["--monofuzz-policy", "dtrr"], "unknown policy 'dtrr'; did you mean dtr"),
            (["--monofuzz-claim", "speed"], "invalid choice: 'speed'"),
            (["--monofuzz-max-examples", "0"], "'0' is not a whole number from 1 on"),
            (["--monofuzz-max-runs", "x"], "'x' is not a whole number from 1 on"),
            (["--monofuzz-seed", "-1"], "'-1' is not a whole number from 0 on"),
            (["--monofuzz-time", "nan"], "'nan' is not a positive number of seconds"),
            (["--monofuzz-between", "0.9", "0.1"], "there is no budget between 0.9 and 0.1"),
            (["--monofuzz-between", "1", "much"], "budget 'much' is not understood"),
            (["--monofuzz-between", "1"], "expected 2 arguments"),
        ],
    )
    def test_of_options(self, project: Project, options: list[str], words: str) -> None:
        result = project.run(*options, test="def test_it(): pass")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert words in said(result)

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("monofuzz_claim = speed", "monofuzz_claim in the configuration file is 'speed'"),
            ("monofuzz_between = 1", "is '1'; it is two budgets: LO HI"),
            ("monofuzz_time = 0", "monofuzz_time in the configuration file: '0' is not a positive"),
            ("monofuzz_trace = demoo", "there is no trace or file 'demoo'"),
        ],
    )
    def test_of_the_configuration_file(self, project: Project, line: str, words: str) -> None:
        project.pytester.makeini(f"[pytest]\n{line}\n")
        result = project.run(test=suite("policy='lru', max_examples=1"))
        assert words in said(result)
        assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)

    @pytest.mark.parametrize(
        ("marker", "words"),
        [
            ("polcy='dtr'", "test_it.py::test_it: there is no setting 'polcy'; did you mean"),
            ("policy='dtrr'", "unknown policy 'dtrr'; did you mean dtr"),
            ("policy=3", "a policy is a name or a decorated score function, not 3"),
            ("policy=lambda cots: 0", "which no candidate has; did you mean cost"),
            ("runtime=3", "3 cannot be run; a runtime is a function"),
            ("runtime=planner.Pager", "Pager is a class; give an object of it"),
            ("runtime='dtr'", "'dtr' is a policy, not a runtime"),
            ("runtime=planner.cheap_first", "looks like the score function of a policy"),
            (
                "runtime=planner.odd, trace='demo'",
                "odd is run at a budget alone: it takes no trace",
            ),
            ("policy='dtr', runtime=planner.odd", "not of both"),
            ("policy='dtr', trace='demoo'", "did you mean demo"),
            ("policy='dtr', trace=[]", "trace is an empty list: there is nothing to look at"),
            ("policy='dtr', trace=7", "a trace is a name, a path or a monofuzz.Trace"),
            (
                "policy='dtr', claim='speed'",
                "claim is 'speed'; it is one of feasibility, cost, both",
            ),
            ("policy='dtr', between=5", "between is a pair of budgets (LO, HI), not 5"),
            ("policy='dtr', between=(9, 3)", "there is no budget between 9 and 3"),
            ("policy='dtr', max_examples=0", "max_examples is a whole number from 1 on, not 0"),
            ("policy='dtr', seed=True", "seed is a whole number from 0 on, not True"),
            ("policy='dtr', time='long'", "time is a positive number of seconds, not 'long'"),
            ("policy='dtr', tolerance=-1", "tolerance is a number from 0 on, not -1"),
            ("policy='dtr', allow_undecided=1", "allow_undecided is True or False, not 1"),
            ("'dtr'", "the marker monofuzz takes keywords"),
            ("", "nothing to test: give the marker policy=… or runtime=…"),
        ],
    )
    def test_of_the_marker(self, project: Project, marker: str, words: str) -> None:
        result = project.run(test=suite(marker))
        result.assert_outcomes(errors=1)
        assert words in said(result)
        assert "Traceback" not in said(result)
        assert "site-packages" not in said(result)

    @pytest.mark.parametrize(
        ("marker", "words"),
        [
            ("runtime=lambda b: True", "say between which budgets it is run, between=(LO, HI)"),
            ("runtime=lambda b: None, between=(1, 9)", "at budget 1 is not usable: it is None"),
            ("runtime=planner.odd, between=(1, 9), claim='cost'", "no run succeeded"),
            ("runtime=planner.odd, between=(1, 20), claim='cost'", "does not say what a run costs"),
        ],
    )
    def test_of_a_runtime(self, project: Project, marker: str, words: str) -> None:
        result = project.run(test=suite(marker))
        result.assert_outcomes(failed=1)
        assert words in said(result)

    def test_a_marker_without_a_fixture(self, project: Project) -> None:
        result = project.run(test="@pytest.mark.monofuzz(policy='dtr')\ndef test_it(): pass\n")
        result.assert_outcomes(errors=1)
        assert "asks for neither of the fixtures monofuzz_case and monofuzz" in said(result)

    def test_a_call_of_the_fixture(self, project: Project) -> None:
        test = "def test_it(monofuzz):\n    monofuzz.assert_monotone('lru', max_exmples=3)\n"
        result = project.run(test=test)
        result.assert_outcomes(failed=1)
        assert "there is no setting 'max_exmples'; did you mean max_examples" in said(result)

    def test_a_call_that_looks_at_nothing(self, project: Project) -> None:
        test = "def test_it(monofuzz):\n    monofuzz.assert_monotone('lru', trace=[])\n"
        result = project.run(test=test)
        result.assert_outcomes(failed=1)
        assert "trace is an empty list" in said(result)


class TestBesideOthers:
    def test_the_help_has_a_group(self, project: Project) -> None:
        text = said(project.run("--help"))
        assert "monofuzz: does more memory ever hurt?" in text
        for name in ("policy", "trace", "claim", "between", "max-examples", "seed"):
            assert f"--monofuzz-{name}" in text

    def test_the_documentation_has_all_options(self, project: Project) -> None:
        page = Path(__file__).parents[2] / "docs" / "how-to" / "test-your-planner.md"
        text = page.read_text(encoding="utf-8")
        options = set(re.findall(r"--(monofuzz-[a-z-]+)", said(project.run("--help"))))
        assert len(options) == 8
        for option in options:
            assert f"`--{option}" in text
            assert f"`{option.replace('-', '_')}`" in text

    def test_workers_of_xdist(self, project: Project) -> None:
        pytest.importorskip("xdist")
        test = suite("runtime=planner.greedy, trace=['corpus', 'generated'], max_examples=50")
        self.pytester_file(project, test)
        result = project.pytester.runpytest_subprocess(*LOADED, "-p", "xdist.plugin", "-n", "2")
        result.assert_outcomes(failed=2)
        assert "greedy, feasibility: 2 refuted" in said(result)
        assert "to see it again:" in said(result)

    def test_nothing_is_imported_until_it_is_used(self, project: Project) -> None:
        project.pytester.makeconftest(
            "import sys\n"
            "def pytest_unconfigure():\n"
            "    ours = ('monofuzz', 'numpy', 'numba')\n"
            "    print('LOADED', *(m for m in sys.modules if m.startswith(ours)))\n"
        )
        self.pytester_file(project, "")
        project.pytester.makepyfile(test_it="def test_it(): pass")
        result = project.pytester.runpytest_subprocess(*LOADED, "-s")
        (loaded,) = [line for line in result.outlines if line.startswith("LOADED")]
        assert loaded.split()[1:] == ["monofuzz", "monofuzz.pytest_plugin"]

    def test_without_it_the_marker_is_unknown(self, project: Project) -> None:
        self.pytester_file(project, suite("policy='lru'"))
        result = project.pytester.runpytest_subprocess("--strict-markers")
        result.assert_outcomes(errors=1)
        assert "'monofuzz' not found in `markers`" in said(result)

    @staticmethod
    def pytester_file(project: Project, test: str) -> None:
        project.pytester.makepyfile(test_it=f"import pytest, planner\n{test}")


def test_the_entry_point_is_declared() -> None:
    import tomllib

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    project = tomllib.loads(text)
    assert project["project"]["entry-points"]["pytest11"] == {"monofuzz": "monofuzz.pytest_plugin"}
    # The corpus is part of the wheel.
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"corpus/counterexamples": "monofuzz/corpus"}
