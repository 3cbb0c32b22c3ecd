"""DTR logs that nobody recorded, with every spelling that logs are known to have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["draw_log"]


@st.composite
def draw_log(draw: st.DrawFn, max_instructions: int, size: st.SearchStrategy[int]) -> list[str]:
    """The lines of a valid log of up to so many instructions."""
    log = _Log(draw, size)
    if draw(st.booleans()):
        log.say(INSTRUCTION="ANNOTATE", ANNOTATION="START")
    log.constant()
    actions: list[Callable[[], None]] = [
        log.constant,
        log.call,
        log.call,
        log.mutate,
        log.copy,
        log.copy_from,
        log.release,
        log.release,
        log.annotate,
    ]
    for _ in range(draw(st.integers(1, max_instructions))):
        draw(st.sampled_from(actions))()
    return log.lines


class _Log:
    """A DTR log being made up, with just enough memory to keep it valid."""

    def __init__(self, draw: st.DrawFn, size: st.SearchStrategy[int]) -> None:
        self.draw, self.size = draw, size
        self.lines: list[str] = []
        self.bound: dict[str, int] = {}
        self.root: list[int] = []
        self.shared: list[int] = []

    def say(self, **instruction: Any) -> None:
        self.lines.append(json.dumps(instruction))

    def number(self, value: int) -> int | str | float:
        spellings: list[int | str | float] = [str(value), str(value), value, value + 0.5]
        return self.draw(st.sampled_from(spellings))

    def fresh(self) -> str:
        return f"x{len(self.bound)}"

    def any_name(self) -> str:
        return self.draw(st.sampled_from(list(self.bound)))

    def alive(self, name: str) -> bool:
        return self.shared[self.root[self.bound[name]]] > 0

    def tensor(self, name: str, root: int | None = None) -> None:
        number = len(self.root)
        self.root.append(number if root is None else root)
        self.shared.append(0)
        self.shared[self.root[-1]] += 1
        self.bound[name] = number

    def drop(self, tensor: int) -> None:
        self.shared[self.root[tensor]] -= 1

    def memory(self, name: str) -> None:
        self.say(INSTRUCTION="MEMORY", NAME=name, MEMORY=self.number(self.draw(self.size)))

    def constant(self) -> None:
        name = self.fresh()
        self.say(INSTRUCTION="CONSTANT", NAME=name)
        self.memory(name)
        self.tensor(name)

    def call(self) -> None:
        names = [self.any_name() for _ in range(self.draw(st.integers(0, 3)))]
        storages = [self.root[self.bound[name]] for name in names]
        count = self.draw(st.integers(1, 2))
        results = [f"x{len(self.bound) + i}" for i in range(count)]
        self.say(
            INSTRUCTION="CALL",
            NAME="op",
            ARGS=names,
            RESULT=results,
            TIME=self.number(self.draw(self.size)),
        )
        for name in results:
            alias = self.draw(st.integers(-1, len(names) - 1))
            self.memory(name)
            shown = self.draw(st.sampled_from([alias, str(alias)]))
            self.say(INSTRUCTION="ALIAS", NAME=name, ALIAS=shown)
            self.tensor(name, None if alias < 0 else storages[alias])

    def mutate(self) -> None:
        names = [self.any_name() for _ in range(self.draw(st.integers(1, 3)))]
        left: dict[int, int] = {}
        replaced: list[int] = []
        old: list[int] = []
        for i, name in enumerate(names):
            tensor = self.bound[name]
            root = self.root[tensor]
            left.setdefault(root, self.shared[root])
            if tensor not in old and left[root] > 0 and self.draw(st.booleans()):
                left[root] -= 1
                replaced.append(i)
                old.append(tensor)
        if not replaced:
            return
        time = self.number(self.draw(self.size))
        self.say(INSTRUCTION="MUTATE", NAME="add_", ARGS=names, MUTATE=replaced, TIME=time)
        for i, tensor in zip(replaced, old, strict=True):
            self.tensor(names[i])
            self.drop(tensor)

    def copy(self) -> None:
        source = self.any_name()
        if self.alive(source):
            name = self.fresh()
            self.say(INSTRUCTION="COPY", DST=name, SRC=source)
            self.bound[name] = self.bound[source]
            self.shared[self.root[self.bound[source]]] += 1

    def copy_from(self) -> None:
        name, source = self.any_name(), self.any_name()
        old, new = self.root[self.bound[name]], self.root[self.bound[source]]
        needed = 2 if old == new and self.bound[name] != self.bound[source] else 1
        if self.shared[old] >= needed and self.shared[new] >= needed:
            self.say(INSTRUCTION="COPY_FROM", DST=name, SRC=source)
            self.bound[name] = self.bound[source]
            self.shared[old] -= 1
            self.shared[new] += 1

    def release(self) -> None:
        name = self.any_name()
        if self.alive(name):
            self.say(INSTRUCTION="RELEASE", NAME=name)
            self.drop(self.bound[name])

    def annotate(self) -> None:
        self.say(INSTRUCTION="ANNOTATE", ANNOTATION="BACKWARD")
