"""The errors that monofuzz raises for bad input, each one clear sentence.

Every error says what is wrong, where, and what to do about it. The command line prints it and
exits with status 2; library users catch `MonofuzzError` or the subclass that they can act on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "BudgetError",
    "DownloadError",
    "FileError",
    "FlakyError",
    "MonofuzzError",
    "PolicyError",
    "RecordError",
    "ResourceError",
    "StoredFileError",
    "TableError",
    "TraceError",
    "UsageError",
    "nearest",
]


class MonofuzzError(Exception):
    """Base of all errors that a user of monofuzz can cause and repair."""


class UsageError(MonofuzzError):
    """An argument or option that makes no sense, alone or beside the others."""


class PolicyError(MonofuzzError):
    """An unknown policy, an unknown parameter, or a parameter out of its range."""


class BudgetError(MonofuzzError):
    """A budget, or a range of budgets, that is not one."""


class RecordError(MonofuzzError):
    """A training step that cannot be recorded, or was not recorded completely."""


class FlakyError(MonofuzzError):
    """A system that gives different runs at the same budget: nothing can be said about it."""


class ResourceError(MonofuzzError):
    """The work asked for needs more memory (or another resource) than there is."""


class DownloadError(MonofuzzError):
    """A download that failed: no network, a missing file, wrong content."""


class StoredFileError(MonofuzzError):
    """A file that monofuzz wrote earlier (a map, a counterexample, a campaign) is unusable."""


class FileError(MonofuzzError):
    """A file is malformed: what is wrong, and where.

    ``problem`` is the sentence without its place; ``file``, ``line`` (counted from 1) and
    ``field`` say where, each None when it does not apply. ``str()`` joins them as
    ``FILE:LINE: PROBLEM (field FIELD)``.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.field = field
        place = ""
        if file is not None:
            place = f"{file}:{line}: " if line is not None else f"{file}: "
        elif line is not None:
            place = f"line {line}: "
        super().__init__(place + problem + (f" (field {field})" if field is not None else ""))

    def at(self, file: str) -> Self:
        """The same error with the file named, for callers that know where the bytes came from."""
        return type(self)(self.problem, file=file, line=self.line, field=self.field)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.problem, self.file, self.line, self.field)


class TraceError(FileError):
    """A trace, or a file that should hold one, is malformed."""


class TableError(FileError):
    """A table of measurements is malformed."""


def _rebuilt(
    kind: type[FileError], problem: str, file: str | None, line: int | None, field: str | None
) -> FileError:
    return kind(problem, file=file, line=line, field=field)


def nearest(word: str, known: list[str] | tuple[str, ...], *, count: int = 3) -> str:
    """A hint for an unknown name: ``"; did you mean a, b or c?"``, or "" when nothing is near."""
    import difflib

    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=count, cutoff=0.5)
    if not close:
        return ""
    names = [lowered[name] for name in close]
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
    return f"; did you mean {listed}?"
