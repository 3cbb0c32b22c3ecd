"""One test: a subject, a place, a claim."""

from __future__ import annotations

import time as _time
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from monofuzz.counterexample.corpus import corpus_graphs
from monofuzz.errors import UsageError
from monofuzz.hunt import hunt_all
from monofuzz.replay.system import prepare
from monofuzz.search import as_system, check
from monofuzz.search.mapping import BETWEEN
from monofuzz.shrink import shrink
from monofuzz.suite.listing import plural
from monofuzz.suite.places import generated_graphs
from monofuzz.suite.result import Result
from monofuzz.suite.settings import POLICY_EXAMPLES, RUNTIME_EXAMPLES
from monofuzz.suite.shrinking import budgets_of, of_counterexample, of_system, of_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from monofuzz.search.verdict import Claim, Witness
    from monofuzz.suite.places import Place
    from monofuzz.suite.result import Breach
    from monofuzz.suite.settings import Settings
    from monofuzz.suite.subject import Subject
    from monofuzz.trace import Trace

__all__ = ["examine"]


def examine(
    subject: Subject,
    place: Place,
    claim: Claim,
    settings: Settings,
    *,
    announce: Callable[[], None] | None = None,
) -> Result:
    """Look for a breach of a claim, and shrink it.

    A trace is mapped as far as the settings allow, all budgets of each small graph of the corpus
    are run, and graphs are generated until one breaks the claim. ``announce`` is called before the
    engine is compiled, which takes half a minute the first time on a machine.

    Raises what a runtime raises, with a note of the graph; `FlakyError`; and `MonofuzzError` for
    what cannot be tested.
    """
    if subject.kind == "system":
        return _system(subject, claim, settings)
    if place.kind == "none":
        raise UsageError(f"{subject.name} needs a trace to run")
    prepare("compiled", announce)
    if place.kind == "trace":
        return _trace(subject, place, claim, settings)
    if place.kind == "corpus":
        return _graphs(subject, place, claim, settings, corpus_graphs())
    if subject.kind == "policy" and not settings.tolerance and settings.between is None:
        return _hunted(subject, place, claim, settings)
    most = settings.max_examples or RUNTIME_EXAMPLES
    graphs = islice(generated_graphs(settings.seed), most)
    first = next(graphs)  # compiles the generator, which is not in the time for the search
    return _graphs(subject, place, claim, settings, chain([first], graphs))


def _system(subject: Subject, claim: Claim, settings: Settings) -> Result:
    system = as_system(subject.thing)
    if settings.between is None and getattr(system, "peak", None) is None:
        raise UsageError(
            f"{subject.name} takes no trace and has no peak: say between which budgets it is run, "
            "between=(LO, HI) in bytes"
        )
    return _mapped(
        subject, system, "", claim, settings, lambda witness: of_system(system, witness, settings)
    )


def _trace(subject: Subject, place: Place, claim: Claim, settings: Settings) -> Result:
    trace = place.trace()
    return _mapped(
        subject,
        subject.on(trace, limit=settings.limit),
        place.name,
        claim,
        settings,
        lambda witness: of_trace(subject, trace, witness, settings, place.name),
    )


def _mapped(
    subject: Subject,
    system: object,
    place: str,
    claim: Claim,
    settings: Settings,
    breach: Callable[[Witness], Breach],
) -> Result:
    """One system, searched in the range of the settings; ``place`` names its trace, if any."""
    (one,) = check(
        system,
        claims=(claim,),
        between=settings.between or BETWEEN,
        max_runs=settings.max_runs,
        time=settings.time,
        tolerance=settings.tolerance,
    )
    found, verdict = one.map, one.verdict
    _stop_if(found.stopped)
    return Result(
        subject=subject.name,
        place=place,
        claim=claim,
        verdict=verdict.verdict,
        covered=found.covered,
        runs=found.runs,
        graphs=1 if place else 0,
        feasible=found.feasible,
        reason=verdict.reason,
        breach=None if verdict.witness is None else breach(verdict.witness),
    )


@dataclass
class _Tally:
    """What many graphs came to."""

    graphs: int = 0
    runs: int = 0
    known: float = 0.0
    proved: int = 0
    feasible: bool = False


def _graphs(
    subject: Subject,
    place: Place,
    claim: Claim,
    settings: Settings,
    graphs: Iterable[tuple[str, Trace]],
) -> Result:
    tally = _Tally()
    end = _time.perf_counter() + settings.time
    out_of_time = False
    for name, trace in graphs:
        if out_of_time := (left := end - _time.perf_counter()) <= 0:
            break
        system = subject.on(trace, limit=settings.limit)
        try:
            (one,) = check(
                system,
                claims=(claim,),
                between=budgets_of(system, settings),
                max_runs=settings.max_runs,
                time=left,
                tolerance=settings.tolerance,
                jobs=0,
            )
        except Exception as error:
            error.add_note(f"monofuzz: on the graph {name} of {place.name}")
            raise
        _stop_if(one.map.stopped)
        tally.graphs += 1
        tally.runs += one.map.runs
        tally.known += one.map.covered
        tally.proved += one.verdict.verdict == "monotone"
        tally.feasible = tally.feasible or one.map.feasible
        if one.verdict.witness is not None:
            breach = of_trace(subject, trace, one.verdict.witness, settings, name)
            return _summed(subject, place, claim, tally, one.verdict.reason, breach)
    return _summed(subject, place, claim, tally, _why(tally, place, out_of_time), None)


def _hunted(subject: Subject, place: Place, claim: Claim, settings: Settings) -> Result:
    most = settings.max_examples or POLICY_EXAMPLES
    # The first graph compiles the generator, which is not in the time for the search.
    hunt_all([subject.thing], claims=(claim,), max_examples=1, limit=settings.limit)
    (hunt,) = hunt_all(
        [subject.thing],
        claims=(claim,),
        seed=settings.seed,
        max_examples=most,
        time=settings.time,
        limit=settings.limit,
    )
    _stop_if(hunt.stopped)
    tally = _Tally(hunt.graphs, hunt.runs, hunt.graphs, hunt.graphs, feasible=True)
    example = hunt.smallest.get(claim)
    if example is None:
        return _summed(
            subject, place, claim, tally, _why(tally, place, hunt.stopped == "time"), None
        )
    # The hunt may have run out of time before its find was small.
    example = shrink(example, seconds=settings.time)
    found = example.found
    first = f"{found['graph_class']}-{found['graph_operators']}-{found['graph_seed']}"
    operators = int(found["graph_operators"])
    breach = of_counterexample(subject, example, settings, first, operators)
    return _summed(subject, place, claim, tally, str(breach.witness), breach)


def _summed(
    subject: Subject, place: Place, claim: Claim, tally: _Tally, reason: str, breach: Breach | None
) -> Result:
    complete = place.kind == "corpus" and tally.proved == tally.graphs and not reason
    verdict = "refuted" if breach else "monotone" if complete else "undecided"
    return Result(
        subject=subject.name,
        place=place.name,
        claim=claim,
        verdict=verdict,  # type: ignore[arg-type]
        covered=min(tally.known / tally.graphs, 1.0) if tally.graphs else 0.0,
        runs=tally.runs,
        graphs=tally.graphs,
        feasible=tally.feasible,
        reason=reason or f"proved for all budgets of {plural(tally.graphs, 'graph')}",
        breach=breach,
    )


def _why(tally: _Tally, place: Place, out_of_time: bool) -> str:
    """Why nothing was proved; empty if it was."""
    reasons = []
    if out_of_time:
        reasons.append(f"the time was over after {plural(tally.graphs, 'graph')}")
    if not tally.feasible:
        reasons.append("no run succeeded, so that nothing was compared")
    elif place.kind == "generated":
        reasons.append(f"none of {plural(tally.graphs, 'graph')} breaks it; another one may")
    elif tally.proved < tally.graphs and not out_of_time:
        reasons.append(
            f"none of {plural(tally.graphs, 'graph')} breaks it, but runs without intervals prove "
            "nothing"
        )
    return "; ".join(reasons)


def _stop_if(stopped: str) -> None:
    # The search keeps what it found and ends in peace; a test run must end.
    if stopped == "interrupted":
        raise KeyboardInterrupt
