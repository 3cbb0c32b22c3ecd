"""The pytest plugin: tests that more memory never hurts a policy or a runtime.

::

    @pytest.mark.monofuzz(policy=score)
    def test_more_memory_never_hurts(monofuzz_case):
        monofuzz_case.check()

What is typed on the command line counts before what a test says, and that before the configuration
file. Nothing of monofuzz but this module is imported until a test or an option asks for it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Generator, Iterable

    from monofuzz.search.verdict import Claim
    from monofuzz.suite import Place, Result, Settings, Subject

__all__ = ["Monofuzz", "MonofuzzCase"]

_CLAIMS = ("feasibility", "cost", "both")
_MARKER = (
    "monofuzz(policy=None, runtime=None, trace=None, claim='feasibility', between=None, "
    "max_examples=None, max_runs=2000, time=10, seed=0, tolerance=0, limit=60, "
    "allow_undecided=True): what the fixtures monofuzz_case and monofuzz test, and how hard they "
    "look"
)
_WHAT = ("policy", "runtime", "trace", "claim")
_results: pytest.StashKey[list[dict[str, Any]]] = pytest.StashKey()


# -- options


def _number(kind: Callable[[str], Any], least: float, what: str) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return number


_count = _number(int, 1, "a whole number from 1 on")
_seed = _number(int, 0, "a whole number from 0 on")
_seconds = _number(float, 1e-3, "a positive number of seconds")

_NUMBERS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "max_examples": (
        _count,
        "N",
        "graphs to generate for each test (20,000 for a policy, 200 for a runtime)",
    ),
    "max_runs": (_count, "N", "runs of a trace for each test (2000)"),
    "time": (_seconds, "SECONDS", "time to search for each test, and as long again to shrink (10)"),
    "seed": (_seed, "N", "which graphs are generated (0)"),
}
_LISTS = {
    "policy": ("POLICY", "a policy for tests that name none"),
    "trace": (
        "TRACE",
        "where to look: the name or path of a trace, 'corpus' or 'generated' (all that come with "
        "monofuzz, and both)",
    ),
}
_BETWEEN = "budgets: ratios of the peak with a point or %%, or bytes (0.05 1.0)"
_CLAIM = "what shall hold: feasibility, more memory never fails; cost, it never costs more; or both"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("monofuzz", "monofuzz: does more memory ever hurt?")
    for name, (metavar, text) in _LISTS.items():
        group.addoption(
            f"--monofuzz-{name}",
            action="append",
            dest=f"monofuzz_{name}",
            metavar=metavar,
            help=f"{text}; may be given several times",
        )
        parser.addini(f"monofuzz_{name}", f"{text}, one a line", type="linelist")
    group.addoption("--monofuzz-claim", dest="monofuzz_claim", choices=_CLAIMS, help=_CLAIM)
    parser.addini("monofuzz_claim", _CLAIM)
    group.addoption(
        "--monofuzz-between",
        dest="monofuzz_between",
        nargs=2,
        metavar=("LO", "HI"),
        help=_BETWEEN,
    )
    parser.addini("monofuzz_between", "LO HI: " + _BETWEEN.replace("%%", "%"), type="args")
    for name, (kind, metavar, text) in _NUMBERS.items():
        group.addoption(
            f"--monofuzz-{name.replace('_', '-')}",
            dest=f"monofuzz_{name}",
            type=kind,
            metavar=metavar,
            help=text,
        )
        parser.addini(f"monofuzz_{name}", text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    # Checked here only if there is something to check, as that takes imports.
    if _said(config, "policy") or _said(config, "trace") or _said(config, "between"):
        with _usage_errors():
            _settings(config, {})
            for name in _said(config, "policy") or ():
                _subject().policy(name)
            for name in _said(config, "trace") or ():
                _place(name)


def _said(config: pytest.Config, name: str) -> Any:
    """What the command line says, else the configuration file; None if neither does."""
    typed = config.getoption(f"monofuzz_{name}")
    return _written(config, name) if typed is None else typed


def _written(config: pytest.Config, name: str) -> Any:
    """What the configuration file says; None if nothing."""
    text: Any = config.getini(f"monofuzz_{name}")
    if not text:
        return None
    place = f"monofuzz_{name} in the configuration file"
    if name in _NUMBERS:
        try:
            return _NUMBERS[name][0](text)
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"{place}: {error}") from None
    if name == "claim" and text not in _CLAIMS:
        raise pytest.UsageError(f"{place} is {text!r}; it is one of {', '.join(_CLAIMS)}")
    if name == "between" and len(text) != 2:
        raise pytest.UsageError(f"{place} is {' '.join(text)!r}; it is two budgets: LO HI")
    return text


# -- what is asked for, from the command line, the test and the configuration file


def _chosen(config: pytest.Config, name: str, given: dict[str, Any]) -> Any:
    typed = config.getoption(f"monofuzz_{name}")
    if typed is not None:
        return typed
    return given[name] if given.get(name) is not None else _written(config, name)


def _settings(config: pytest.Config, given: dict[str, Any]) -> Settings:
    from monofuzz.suite import Settings

    wanted = dict(given)
    for name in ("between", *_NUMBERS):
        value = _chosen(config, name, given)
        if value is not None:
            wanted[name] = tuple(value) if isinstance(value, list) else value
    return Settings.of(wanted, beside=_WHAT)


def _claims(config: pytest.Config, given: dict[str, Any]) -> tuple[Claim, ...]:
    from monofuzz.errors import UsageError
    from monofuzz.search.verdict import CLAIMS

    claim = _chosen(config, "claim", given) or "feasibility"
    if claim not in _CLAIMS:
        raise UsageError(f"claim is {claim!r}; it is one of {', '.join(_CLAIMS)}")
    return tuple(known for known in CLAIMS if claim in (known, "both"))


def _places(config: pytest.Config, subject: Subject, given: dict[str, Any]) -> list[Place]:
    from monofuzz.errors import UsageError
    from monofuzz.suite import Place, default_places

    if subject.kind == "system":
        if given.get("trace") is not None:
            raise UsageError(f"{subject.name} is run at a budget alone: it takes no trace")
        return [Place("none", "")]
    sources = _chosen(config, "trace", given)
    if sources is None:
        return default_places()
    if isinstance(sources, list | tuple):
        if not sources:
            raise UsageError("trace is an empty list: there is nothing to look at")
        return [_place(one) for one in sources]
    return [_place(sources)]


def _subjects(config: pytest.Config, given: dict[str, Any]) -> list[Subject]:
    from monofuzz.errors import UsageError

    policy, runtime = given.get("policy"), given.get("runtime")
    if policy is not None and runtime is not None:
        raise UsageError("a test is of a policy or of a runtime, not of both")
    if policy is not None:
        return [_subject().policy(policy)]
    if runtime is not None:
        return [_subject().runtime(runtime)]
    names = _said(config, "policy")
    if not names:
        raise UsageError(
            "nothing to test: give the marker policy=… or runtime=…, or use --monofuzz-policy"
        )
    return [_subject().policy(name) for name in names]


def _subject() -> type[Subject]:
    from monofuzz.suite import Subject

    return Subject


def _place(source: Any) -> Place:
    from monofuzz.suite import place

    return place(source)


class _usage_errors:  # noqa: N801 (a context manager)
    """Errors of the user's, as pytest tells them, without a traceback."""

    def __init__(self, raises: Callable[[str], BaseException] = pytest.UsageError) -> None:
        self._raises = raises

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        __tracebackhide__ = True
        from monofuzz.errors import MonofuzzError

        if isinstance(error, MonofuzzError):
            notes: Iterable[str] = getattr(error, "__notes__", ())
            raise self._raises("\n".join([str(error), *notes])) from None


def _fail(text: str) -> BaseException:
    return pytest.fail.Exception(text, pytrace=False)


# -- tests


class _Case(NamedTuple):
    subject: Subject
    place: Place
    claim: Claim
    settings: Settings


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = _marked(metafunc.definition)
    if "monofuzz_case" not in metafunc.fixturenames:
        if given is not None and "monofuzz" not in metafunc.fixturenames:
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid} is marked monofuzz, but asks for neither of the "
                "fixtures monofuzz_case and monofuzz"
            )
        return
    where = metafunc.definition.nodeid

    def refuse(text: str) -> BaseException:
        return pytest.Collector.CollectError(f"{where}: {text}")

    with _usage_errors(refuse):
        cases, ids = _cases(metafunc.config, given or {})
    metafunc.parametrize("monofuzz_case", cases, ids=ids, indirect=True)


def _marked(item: Any) -> dict[str, Any] | None:
    """What the markers of a test say, the nearest first; None if it has none."""
    found = list(item.iter_markers("monofuzz"))
    given: dict[str, Any] = {}
    for marker in reversed(found):
        if marker.args:
            raise pytest.Collector.CollectError(
                f"{item.nodeid}: the marker monofuzz takes keywords: policy=…, runtime=…, trace=…"
            )
        given |= marker.kwargs
    return given if found else None


def _cases(config: pytest.Config, given: dict[str, Any]) -> tuple[list[_Case], list[str]]:
    settings = _settings(config, given)
    subjects = _subjects(config, given)
    cases = [
        _Case(subject, place, claim, settings)
        for subject in subjects
        for place in _places(config, subject, given)
        for claim in _claims(config, given)
    ]
    several = len(subjects) > 1
    ids = [
        "-".join(filter(None, (case.subject.name if several else "", case.place.name, case.claim)))
        for case in cases
    ]
    return cases, ids


class _Checker:
    """What both fixtures do: look, keep the verdict with the test's report, fail."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    def _examine(self, case: _Case) -> Result:
        __tracebackhide__ = True
        from monofuzz.search import MonotonicityUndecided, MonotonicityViolation
        from monofuzz.suite import examine

        try:
            with _usage_errors(_fail):
                result = examine(
                    case.subject, case.place, case.claim, case.settings, announce=self._announce
                )
        except (Exception, SystemExit) as error:
            raise error.with_traceback(_outside(error.__traceback__)) from None
        self._record(case, result)
        if result.breach is not None:
            raise MonotonicityViolation(
                result.text(self._command(case, result)), result.breach.witness
            )
        if result.verdict == "undecided" and not (
            result.feasible and case.settings.allow_undecided
        ):
            raise MonotonicityUndecided(result.text())
        return result

    def _announce(self) -> None:
        plugins = self._node.config.pluginmanager
        reporter = plugins.get_plugin("terminalreporter")
        capture = plugins.get_plugin("capturemanager")
        if reporter is None:  # a worker of pytest-xdist
            return
        with contextlib.nullcontext() if capture is None else capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line("monofuzz: compiling its engine, once on this machine ...")

    def _record(self, case: _Case, result: Result) -> None:
        facts = {
            "policy": result.subject,
            "trace": result.place,
            "claim": result.claim,
            "verdict": result.verdict,
            "covered": round(result.covered, 9),
            "runs": result.runs,
            "seed": case.settings.seed,
        }
        self._node.user_properties.extend(facts.items())
        self._node.stash.setdefault(_results, []).append(facts)

    def _command(self, case: _Case, result: Result) -> str:
        """The command that shows the failure again, with the trace that it needs in a file."""
        assert result.breach is not None
        config = self._node.config
        here = config.invocation_params.dir
        _, _, inside = self._node.nodeid.partition("::")
        path = os.path.relpath(self._node.path, here)
        words = ["pytest", f"{path}::{inside.partition('[')[0]}"]
        names = config.getoption("monofuzz_policy") or _written(config, "policy")
        if case.subject.kind == "policy" and case.subject.name in (names or ()):
            words += ["--monofuzz-policy", case.subject.name]
        trace = result.breach.trace
        if trace is not None:
            from monofuzz.trace.library import save

            target = _folder(config) / f"{trace.digest[:12]}.trace"
            save(trace, target)
            words += ["--monofuzz-trace", os.path.relpath(target, here)]
        low, high = result.breach.witness.budgets
        words += ["--monofuzz-claim", result.claim]
        words += ["--monofuzz-between", str(low), str(high + 1)]
        return shlex.join(words)


def _outside(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback from the first frame that is not of monofuzz; all of it if there is none."""
    package = os.path.dirname(__file__) + os.sep
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(package):
        rest = rest.tb_next
    return rest or trace


def _folder(config: pytest.Config) -> Path:
    cache = getattr(config, "cache", None)
    if cache is not None:
        return Path(cache.mkdir("monofuzz"))
    return Path(tempfile.mkdtemp(prefix="monofuzz-"))


class MonofuzzCase(_Checker):
    """One test of a suite: ``subject`` (its ``name``) on ``place``, and the ``claim``."""

    def __init__(self, node: pytest.Item, case: _Case) -> None:
        super().__init__(node)
        self._case = case
        self.subject = case.subject.name
        self.place = case.place.name
        self.claim = case.claim

    def check(self) -> Result:
        """Look for two budgets that break the claim.

        Raises `MonotonicityViolation` with the smallest graph found, or `MonotonicityUndecided`
        when nothing could be compared, or nothing was proved and ``allow_undecided`` is False.
        """
        __tracebackhide__ = True
        return self._examine(self._case)


class Monofuzz(_Checker):
    """Asserts that more memory never hurts, inside a test of your own."""

    def assert_monotone(
        self, subject: Any, trace: Any = None, *, claim: str | None = None, **settings: Any
    ) -> list[Result]:
        """Fail with the smallest counterexample found, if there is one.

        ``subject``: the name of a policy, a function decorated with ``monofuzz.policy``, or a
        runtime: a function of a budget or of a trace and a budget, or an object with such a method
        ``run``. ``trace``: one or a list of names, paths, traces, ``"corpus"``, ``"generated"``;
        ``"generated"`` if None. ``settings`` are those of the marker, which count where the call
        says nothing.
        """
        __tracebackhide__ = True
        config = self._node.config
        given = {
            k: v for k, v in (_marked(self._node) or {}).items() if k not in ("policy", "runtime")
        }
        given |= {k: v for k, v in (("trace", trace), ("claim", claim)) if v is not None} | settings
        with _usage_errors(_fail):
            what = _subject().of(subject)
            if what.kind != "system":
                given.setdefault("trace", "generated")
            places = _places(config, what, given)
            claims = _claims(config, given)
            chosen = _settings(config, given)
        results = []
        for place in places:
            for one in claims:
                results.append(self._examine(_Case(what, place, one, chosen)))  # noqa: PERF401
        return results


@pytest.fixture
def monofuzz_case(request: pytest.FixtureRequest) -> MonofuzzCase:
    """One test of the suite that the marker monofuzz asks for: call its ``check()``."""
    return MonofuzzCase(request.node, request.param)


@pytest.fixture
def monofuzz(request: pytest.FixtureRequest) -> Monofuzz:
    """``monofuzz.assert_monotone(policy_or_runtime, trace=..., between=...)`` inside a test."""
    return Monofuzz(request.node)


# -- reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report: Any = yield
    found = item.stash.get(_results, None)
    if found and report.when == "call":
        # Plain data, so that pytest-xdist carries it over.
        report.monofuzz = found
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    found = [
        one
        for reports in terminalreporter.stats.values()
        for report in reports
        for one in getattr(report, "monofuzz", ())
    ]
    if not found:
        return
    terminalreporter.section("monofuzz")
    for subject, claim in dict.fromkeys((one["policy"], one["claim"]) for one in found):
        mine = [one for one in found if (one["policy"], one["claim"]) == (subject, claim)]
        terminalreporter.write_line(f"{subject}, {claim}: {_counted(mine)}")


def _counted(found: list[dict[str, Any]]) -> str:
    parts = []
    for verdict, word in (("refuted", "refuted"), ("monotone", "proved"), ("undecided", "")):
        mine = [one for one in found if one["verdict"] == verdict]
        if not mine:
            continue
        if word:
            parts.append(f"{len(mine)} {word}")
            continue
        runs = sum(one["runs"] for one in mine)
        known = [one["covered"] for one in mine]
        least, most = f"{min(known):.2%}", f"{max(known):.2%}"
        shares = least if least == most else f"{least} to {most}"
        parts.append(
            f"{len(mine)} undecided (nothing found in {runs:,} runs; {shares} of the budgets known)"
        )
    return ", ".join(parts)
