"""A project to test, as text: what `pytester` writes beside its tests."""

from __future__ import annotations

PLANNER = '''
def cheap_first(cost, size, staleness):
    return cost / (size * staleness) if size * staleness > 0 else 1e300


def need(trace):
    """What some operator needs at once."""
    most = 0
    for op in range(trace.n_ops):
        there = {int(trace.tensor_root[t]) for t in [*trace.arguments(op), *trace.outputs(op)]}
        most = max(most, sum(int(trace.tensor_size[t]) for t in there))
    return most


class Pager:
    """Fits if every operator does; never recomputes."""

    def run(self, trace, budget):
        return budget >= need(trace)


def greedy(trace, budget):
    """Takes two bytes of workspace as soon as there is one to spare."""
    least = need(trace)
    usable = budget - 2 if budget > least else budget
    if usable < least:
        raise MemoryError("no room")
    return 100 / budget


def odd(budget):
    return budget >= 10 and budget != 333
'''
