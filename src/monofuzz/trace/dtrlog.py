"""Reading the logs of DTR: one JSON object a line, as the prototype's PyTorch wrote them.

The format and its meaning are described in docs/trace-formats.md. Logs are hostile until read:
each refusal is a `TraceError` with file, line and field.
"""

from __future__ import annotations

import math
import re
from typing import Final, NoReturn

import msgspec

from monofuzz.errors import TraceError
from monofuzz.trace.columns import Columns, integers, small_integers
from monofuzz.trace.files import Source, read_content
from monofuzz.trace.model import (
    MAX_COMMANDS,
    MAX_COST,
    MAX_OPERATORS,
    MAX_SIZE,
    MAX_TOTAL,
    LogNames,
    Trace,
    TraceMeta,
)

__all__ = ["MAX_LINE_BYTES", "parse", "read"]

MAX_LINE_BYTES: Final = 4 * 2**20
"""Longest line of a log."""

_Integer = int | float | str


class _Constant(msgspec.Struct, tag_field="INSTRUCTION", tag="CONSTANT", gc=False):
    NAME: str


class _Memory(msgspec.Struct, tag_field="INSTRUCTION", tag="MEMORY", gc=False):
    NAME: str
    MEMORY: _Integer


class _Alias(msgspec.Struct, tag_field="INSTRUCTION", tag="ALIAS", gc=False):
    NAME: str
    ALIAS: _Integer


class _Call(msgspec.Struct, tag_field="INSTRUCTION", tag="CALL"):
    NAME: str
    ARGS: list[str]
    RESULT: list[str]
    TIME: _Integer


class _Mutate(msgspec.Struct, tag_field="INSTRUCTION", tag="MUTATE"):
    NAME: str
    ARGS: list[str]
    MUTATE: list[int]
    TIME: _Integer


class _Copy(msgspec.Struct, tag_field="INSTRUCTION", tag="COPY", gc=False):
    DST: str
    SRC: str


class _CopyFrom(msgspec.Struct, tag_field="INSTRUCTION", tag="COPY_FROM", gc=False):
    DST: str
    SRC: str


class _Release(msgspec.Struct, tag_field="INSTRUCTION", tag="RELEASE", gc=False):
    NAME: str


class _Annotate(msgspec.Struct, tag_field="INSTRUCTION", tag="ANNOTATE", gc=False):
    ANNOTATION: str


_Instruction = (
    _Constant | _Memory | _Alias | _Call | _Mutate | _Copy | _CopyFrom | _Release | _Annotate
)
_DECODE = msgspec.json.Decoder(_Instruction).decode
_KINDS: Final = (
    _Constant, _Memory, _Alias, _Call, _Mutate, _Copy, _CopyFrom, _Release, _Annotate,
)  # fmt: skip
_TAGS: Final = {str(kind.__struct_config__.tag): kind for kind in _KINDS}
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)


def read(source: Source, *, member: str | None = None) -> Trace:
    """Read a DTR log from a path or file object, also through .zip, .gz, .xz and .zst.

    ``member`` names the log in a zip that holds several. Raises `TraceError`.
    """
    content = read_content(source, member=member)
    return parse(content.data, file=content.label, name=content.stem, source_name=content.source)


def parse(data: bytes, *, file: str = "<log>", name: str = "", source_name: str = "") -> Trace:
    """The trace that the text of a DTR log describes.

    ``file`` is used in error messages; ``name`` and ``source_name`` become the trace's metadata.
    Raises `TraceError`.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        return _Reader(data, file, TraceMeta(name=name, source=source_name, recorder="dtr")).trace()
    except MemoryError:
        raise TraceError("the log is too large for the memory there is", file=file) from None


class _Reader:
    """One log being read: where it is, which names there are, and the arrays so far."""

    def __init__(self, data: bytes, file: str, meta: TraceMeta) -> None:
        self.data = data.rstrip()
        self.cut = not data.endswith(b"\n")  # the last line may be incomplete
        self.file = file
        self.meta = meta
        self.offset = 0
        self.line = 0

        self.bound: dict[str, int] = {}  # name -> tensor; the order is that of first binding
        self.number: dict[str, int] = {}  # name -> its place in that order
        self.columns = Columns()
        self.of_tensor: list[int] = []
        self.of_command: list[int] = []
        self.form: list[int] = []

    def refuse(self, problem: str, field: str | None = None, line: int | None = None) -> NoReturn:
        raise TraceError(problem, file=self.file, line=line or self.line, field=field)

    # -- lines ---------------------------------------------------------------------------------

    def next(self) -> _Instruction | None:
        """The next instruction; None at the end of the log."""
        data, start = self.data, self.offset
        if start >= len(data):
            return None
        self.line += 1
        end = data.find(b"\n", start, start + MAX_LINE_BYTES + 1)
        if end < 0:
            end = len(data)
            if end - start > MAX_LINE_BYTES:
                self.refuse(
                    f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB; "
                    "a log has one instruction a line"
                )
        self.offset = end + 1
        text = data[start:end]
        try:
            return _DECODE(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            self.explain(text)

    def explain(self, text: bytes) -> NoReturn:
        """Say why a line is no instruction."""
        if not text.strip():
            self.refuse("an empty line in the middle of the log: delete it")
        if b"\0" in text:
            self.refuse("this is binary data, not a DTR log")
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            self.refuse("this is not UTF-8 text, so not a DTR log")
        try:
            found = msgspec.json.decode(text)
        except RecursionError:
            self.refuse("JSON nested too deeply; an instruction is a flat object")
        except (msgspec.MsgspecError, ValueError) as error:
            if "out of range" in str(error):
                self.refuse("a number too large to be a size, a cost or an index")
            if self.cut and self.offset > len(self.data) and text.lstrip().startswith(b"{"):
                self.refuse("the log ends in the middle of this line: copy or record it again")
            self.refuse(f"not JSON ({_inline(str(error))}); a log has one JSON object a line")
        if not isinstance(found, dict):
            self.refuse(f"the line is {_a_kind(found)}, expected a JSON object")
        if "INSTRUCTION" not in found:
            self.refuse("the object has no INSTRUCTION", "INSTRUCTION")
        tag = found["INSTRUCTION"]
        kind = _TAGS.get(tag) if isinstance(tag, str) else None
        if kind is None:
            shown = _inline(repr(tag))
            self.refuse(f"unknown instruction {shown}; known: {', '.join(_TAGS)}", "INSTRUCTION")
        for key in kind.__struct_fields__:
            if key not in found:
                self.refuse(f"{tag} without {key}", key)
        for key, wanted in kind.__annotations__.items():
            self.explain_value(key, found[key], str(wanted))
        self.refuse("this is not an instruction of a DTR log")

    def explain_value(self, key: str, value: object, wanted: str) -> None:
        if wanted == "str":
            if not isinstance(value, str):
                self.refuse(f"{key} is {_a_kind(value)}, expected text", key)
        elif wanted.startswith("list"):
            if not isinstance(value, list):
                self.refuse(f"{key} is {_a_kind(value)}, expected a list", key)
            inner, word = (str, "text") if "str" in wanted else (int, "an index")
            for i, item in enumerate(value):
                if not isinstance(item, inner) or isinstance(item, bool):
                    self.refuse(f"{key} holds {_a_kind(item)}, expected {word}", f"{key}[{i}]")
        elif isinstance(value, bool) or not isinstance(value, int | float | str):
            self.refuse(f"{key} is {_a_kind(value)}, expected an integer", key)

    def integer(self, value: _Integer, field: str) -> int:
        """An integer as logs write it: text of an integer, or a number, cut to its whole part."""
        if isinstance(value, str):
            text = value.strip()
            if not _DECIMAL.fullmatch(text):
                self.refuse(f"{field} is {_inline(repr(value))}, expected an integer", field)
            return int(text)
        if type(value) is float and not math.isfinite(value):
            self.refuse(f"{field} is {value}, expected an integer", field)
        return int(value)

    def amount(self, value: _Integer, field: str, limit: int, unit: str) -> int:
        number = self.integer(value, field)
        if number < 0:
            self.refuse(f"{field} is negative; it counts {unit}", field)
        if number > limit:
            self.refuse(f"{field} is above 2**48 {unit}", field)
        return number

    # -- instructions --------------------------------------------------------------------------

    def trace(self) -> Trace:
        self.skip_to_start()
        while (instruction := self.next()) is not None:
            kind = type(instruction)
            if kind is _Release:
                self.release(instruction)  # type: ignore[arg-type]
            elif kind is _Copy:
                self.copy(instruction)  # type: ignore[arg-type]
            elif kind is _Call:
                self.call(instruction)  # type: ignore[arg-type]
            elif kind is _Constant:
                self.constant(instruction)  # type: ignore[arg-type]
            elif kind is _Mutate:
                self.mutate(instruction)  # type: ignore[arg-type]
            elif kind is _CopyFrom:
                self.copy_from(instruction)  # type: ignore[arg-type]
            elif kind is not _Annotate:
                word = "MEMORY" if kind is _Memory else "ALIAS"
                self.refuse(f"{word} that is not directly behind a CALL or CONSTANT", "INSTRUCTION")
        if not self.columns.op_cost:
            self.refuse("the log computes nothing: no CONSTANT, CALL or MUTATE", line=1)
        return self.finish()

    def skip_to_start(self) -> None:
        """Go behind the first START; to the first line if there is none."""
        if b"START" not in self.data and b"\\" not in self.data:
            return
        while (instruction := self.next()) is not None:
            if type(instruction) is _Annotate and instruction.ANNOTATION == "START":
                return
        self.offset = self.line = 0

    def follower(self, kind: type[_Memory | _Alias], name: str, opener: str, line: int) -> _Integer:
        """The value of the MEMORY or ALIAS line that has to come next, for ``name``."""
        word = "MEMORY" if kind is _Memory else "ALIAS"
        found = self.next()
        if found is None:
            self.refuse(
                f"the log ends before the {word} of {_inline(name)}, which {opener} in line {line} "
                "announces: copy or record it again"
            )
        if not isinstance(found, kind):
            tag = type(found).__struct_config__.tag
            self.refuse(f"expected the {word} of {_inline(name)}, found {tag}", "INSTRUCTION")
        if name != found.NAME:
            self.refuse(
                f"{word} of {_inline(found.NAME)}, expected that of {_inline(name)}", "NAME"
            )
        return found.MEMORY if isinstance(found, _Memory) else found.ALIAS

    def constant(self, instruction: _Constant) -> None:
        name = instruction.NAME
        if name in self.bound:
            self.refuse(f"CONSTANT binds {_inline(name)}, which is bound already", "NAME")
        memory = self.follower(_Memory, name, "CONSTANT", self.line)
        tensor = self.columns.tensor(self.size(memory))
        self.bind(name, tensor)
        self.compute("constant", 0, [], constant=True)
        self.columns.pin(tensor)
        self.say(-1)

    def call(self, instruction: _Call) -> None:
        line, results, columns = self.line, instruction.RESULT, self.columns
        if not results:
            self.refuse("CALL without a result", "RESULT")
        for i, name in enumerate(results):
            if name in self.bound:
                self.refuse(f"CALL binds {_inline(name)}, which is bound already", f"RESULT[{i}]")
        if len(results) > 1 and len(set(results)) < len(results):
            self.refuse("CALL names a result twice", "RESULT")
        arguments = self.arguments(instruction.ARGS)
        cost = self.cost(instruction.TIME)
        opener = f"CALL {_inline(instruction.NAME)}"
        for name in results:
            size = self.size(self.follower(_Memory, name, opener, line))
            alias = self.integer(self.follower(_Alias, name, opener, line), "ALIAS")
            if alias == -1:
                tensor = columns.tensor(size)
            elif 0 <= alias < len(arguments):
                tensor = columns.tensor(0, columns.root[arguments[alias]])
            else:
                self.refuse(
                    f"ALIAS is {alias}, expected -1 or an index into the {len(arguments)} ARGS "
                    f"of line {line}",
                    "ALIAS",
                )
            self.bind(name, tensor)
        self.compute(instruction.NAME, cost, arguments)

    def mutate(self, instruction: _Mutate) -> None:
        indices, columns = instruction.MUTATE, self.columns
        if not indices:
            self.refuse("MUTATE that replaces none of its arguments", "MUTATE")
        arguments = self.arguments(instruction.ARGS)
        for i, index in enumerate(indices):
            if not 0 <= index < len(arguments):
                self.refuse(f"index {index} is outside the {len(arguments)} ARGS", f"MUTATE[{i}]")
        replaced = [arguments[index] for index in indices]
        if len(replaced) > 1 and len(set(replaced)) < len(replaced):
            self.refuse("MUTATE replaces the same tensor twice", "MUTATE")
        cost = self.cost(instruction.TIME)
        names = [instruction.ARGS[index] for index in indices]
        for name, old in zip(names, replaced, strict=True):
            size = columns.storage_size(old)
            self.check_total(size, "MUTATE")
            self.bound[name] = columns.tensor(size)
            self.of_tensor.append(self.number[name])
        self.compute(instruction.NAME, cost, arguments, form=LogNames.MUTATE)
        for i, (name, old) in enumerate(zip(names, replaced, strict=True)):
            self.drop(old, name, "MUTATE", f"MUTATE[{i}]", LogNames.MUTATE)

    def copy(self, instruction: _Copy) -> None:
        name = instruction.DST
        if name in self.bound:
            self.refuse(f"COPY binds {_inline(name)}, which is bound already", "DST")
        tensor = self.source(instruction.SRC, "COPY")
        self.bound[name] = tensor
        self.number[name] = len(self.number)
        self.columns.get(tensor)
        self.say(self.number[name])

    def copy_from(self, instruction: _CopyFrom) -> None:
        name = instruction.DST
        old = self.bound.get(name, -1)
        if old < 0:
            self.refuse(f"COPY_FROM into {_inline(name)}, which is not defined", "DST")
        if self.bound.get(instruction.SRC, -1) == old:
            self.source(instruction.SRC, "COPY_FROM")
            return
        self.drop(old, name, "COPY_FROM", "DST", LogNames.COPY_FROM)
        tensor = self.source(instruction.SRC, "COPY_FROM")
        self.bound[name] = tensor
        self.columns.get(tensor)
        self.say(self.number[name], LogNames.COPY_FROM)

    def release(self, instruction: _Release) -> None:
        tensor = self.bound.get(instruction.NAME, -1)
        if tensor >= 0:
            self.drop(tensor, instruction.NAME, "RELEASE", "NAME", LogNames.PLAIN)

    # -- what they are made of -----------------------------------------------------------------

    def arguments(self, names: list[str]) -> list[int]:
        try:
            return [self.bound[name] for name in names]
        except KeyError:
            i = next(i for i, name in enumerate(names) if name not in self.bound)
            self.refuse(
                f"argument {_inline(names[i])} is not defined before this line", f"ARGS[{i}]"
            )

    def cost(self, time: _Integer) -> int:
        cost = self.amount(time, "TIME", MAX_COST, "nanoseconds")
        if self.columns.total_cost + cost >= MAX_TOTAL:
            self.refuse("the costs up to here add up to 2**61 nanoseconds or more", "TIME")
        return cost

    def size(self, memory: _Integer) -> int:
        size = self.amount(memory, "MEMORY", MAX_SIZE, "bytes")
        self.check_total(size, "MEMORY")
        return size

    def check_total(self, size: int, field: str) -> None:
        if self.columns.total_size + size >= MAX_TOTAL:
            self.refuse("the sizes up to here add up to 2**61 bytes or more", field)

    def bind(self, name: str, tensor: int) -> None:
        """Bind a new name to a tensor just made."""
        self.bound[name] = tensor
        number = self.number[name] = len(self.number)
        self.of_tensor.append(number)

    def compute(
        self,
        label: str,
        cost: int,
        arguments: list[int],
        *,
        constant: bool = False,
        form: int = LogNames.PLAIN,
    ) -> None:
        columns = self.columns
        columns.compute(label, cost, arguments, constant=constant)
        self.say(-1, form)
        if len(columns.op_cost) > MAX_OPERATORS or len(columns.args) > MAX_COMMANDS:
            self.refuse(
                f"more than {MAX_OPERATORS:,} operators or {MAX_COMMANDS:,} arguments; "
                "record a shorter step"
            )

    def say(self, name: int, form: int = LogNames.PLAIN) -> None:
        """How the log said the command that was just added."""
        self.of_command.append(name)
        self.form.append(form)

    def source(self, name: str, word: str) -> int:
        """The tensor of a name that is to be shared: its storage needs a reference."""
        tensor = self.bound.get(name, -1)
        if tensor < 0:
            self.refuse(f"{word} from {_inline(name)}, which is not defined", "SRC")
        if self.columns.shared[self.columns.root[tensor]] < 1:
            self.refuse(f"{word} from {_inline(name)}, whose storage has no references", "SRC")
        return tensor

    def drop(self, tensor: int, name: str, word: str, field: str, form: int) -> None:
        if self.columns.shared[self.columns.root[tensor]] < 1:
            self.refuse(
                f"{word} releases {_inline(name)}, whose storage has no references left", field
            )
        self.columns.release(tensor)
        self.say(self.number[name], form)

    def finish(self) -> Trace:
        for name, tensor in self.bound.items():
            if self.columns.references[tensor] > 0:
                self.columns.pin(tensor)
                self.say(self.number[name])
        names = LogNames(
            text=tuple(self.number),
            of_tensor=integers(self.of_tensor),
            of_command=integers(self.of_command),
            form=small_integers(self.form),
        )
        try:
            return self.columns.trace(names, self.meta)
        except TraceError as error:
            raise error.at(self.file) from None


def _inline(text: str, width: int = 60) -> str:
    """``text`` made safe and short enough for a message of one line."""
    shown = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: width + 1]
    )
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def _a_kind(value: object) -> str:
    """What a JSON value is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"
