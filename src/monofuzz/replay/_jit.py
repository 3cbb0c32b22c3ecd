"""How the kernel's functions are compiled, or left as they are.

:func:`load_kernel` executes the one source ``kernel.py`` under either engine: ``compiled`` gives
functions compiled by numba, ``interpreted`` the same functions in plain Python.

Every function of the kernel has an explicit signature. Without one, numba would compile it again
for each combination of literal arguments that a caller happens to use. Memory is handed around as
bare pointers: arrays would be counted references, taken and dropped in every call.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from monofuzz.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "ENGINES",
    "compile_entry",
    "fresh_kernel",
    "jit",
    "load_kernel",
    "pointers",
    "scan_type",
]

ENGINES = ("compiled", "interpreted")
_INTERPRETED = "monofuzz.replay._kernel_interpreted"
_compiled: list[tuple[Any, Any]] = []
_compiling = threading.Lock()
F = TypeVar("F", bound=Callable[..., Any])


def _numba_types() -> Any:
    from numba import types

    return types


def scan_type() -> Any:
    """The numba type of a choice by a score function: a place in the pool from ``m`` and ``f``."""
    types = _numba_types()
    pointers = types.CPointer(types.int64), types.CPointer(types.float64)
    return types.FunctionType(types.int64(*pointers))


def _signature(text: str) -> Any:
    """``"i(mfi)"``: m integers and f doubles by pointer, i int64, d float64, b bool, o a scan."""
    types = _numba_types()
    letters = {
        "m": types.CPointer(types.int64),
        "f": types.CPointer(types.float64),
        "i": types.int64,
        "d": types.float64,
        "b": types.boolean,
        "v": types.void,
    }
    if "o" in text:
        letters["o"] = scan_type()
    result, _, arguments = text.rstrip(")").partition("(")
    returned = [letters[letter] for letter in result]
    if len(returned) == 1:
        return returned[0](*(letters[letter] for letter in arguments))
    return types.Tuple(returned)(*(letters[letter] for letter in arguments))


def jit(signature: str, *, entry: bool = False, exported: bool = False) -> Callable[[F], F]:
    """Compile the decorated function when it belongs to the compiled kernel.

    An ``entry`` is kept in numba's cache on disk, with everything that it calls. Only entries and
    ``exported`` functions can be called from Python: the others need no wrappers, which would
    double the time that they take to compile.
    """

    def decorate(function: F) -> F:
        if function.__module__ == _INTERPRETED:
            return function
        import numba

        inner = not (entry or exported)
        compile_: Any = functools.partial(
            numba.njit,
            nogil=True,
            error_model="numpy",
            no_cpython_wrapper=inner,
            no_cfunc_wrapper=inner,
        )
        try:
            dispatcher = compile_(cache=entry)(function)
        except RuntimeError:  # no folder that numba could write its cache to
            dispatcher = compile_()(function)
        _compiled.append((dispatcher, _signature(signature)))
        return dispatcher  # type: ignore[no-any-return]

    return decorate


def pointers(module: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions that turn an address into a pointer to int64, and to float64.

    The interpreted kernel is given memoryviews instead of addresses, and keeps them.
    """
    if module == _INTERPRETED:
        return (lambda view: view), (lambda view: view)
    from numba.extending import intrinsic

    types = _numba_types()

    def make(pointee: Any) -> Any:
        def pointer(context: Any, address: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

            return types.CPointer(pointee)(types.int64), generate

        return intrinsic(pointer)

    return make(types.int64), make(types.float64)


def compile_entry(announce: Callable[[], None] | None = None) -> None:
    """Make the kernel's entry ready: from the cache on disk, else by compiling everything.

    ``announce`` is called before a compilation.
    """
    entry, signature = _compiled[-1]
    with _compiling:
        if entry.overloads:
            return
        if entry._cache.load_overload(signature, entry.targetctx) is None:
            if announce is not None:
                announce()
            for dispatcher, types in _compiled[:-1]:
                dispatcher.compile(types)
                dispatcher.disable_compile()
        with contextlib.suppress(OSError):  # compiled, but not kept: the disk is full, say
            entry.compile(signature)
        entry.disable_compile()


@functools.cache
def load_kernel(engine: str) -> ModuleType:
    """The kernel module under ``engine``, ``compiled`` or ``interpreted``."""
    if engine == "compiled":
        return importlib.import_module("monofuzz.replay.kernel")
    if engine != "interpreted":
        raise UsageError(f"unknown engine {engine!r}: choose one of {', '.join(ENGINES)}")
    module = fresh_kernel()
    sys.modules[_INTERPRETED] = module
    return module


def fresh_kernel() -> ModuleType:
    """An interpreted kernel of the caller's own, whose functions may be replaced by others."""
    found = importlib.util.find_spec("monofuzz.replay.kernel")
    assert found is not None
    assert found.origin is not None
    spec = importlib.util.spec_from_file_location(_INTERPRETED, found.origin)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
