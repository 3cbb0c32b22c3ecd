"""Recording a step from a function: set up, warm up, repeat, take medians."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monofuzz.errors import MonofuzzError, RecordError, ResourceError, UsageError, nearest
from monofuzz.trace.record import devices
from monofuzz.trace.record.recorder import (
    Recorder,
    describe_costs,
    explain,
    record,
    said,
    user_frame,
)
from monofuzz.trace.record.tape import median_costs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from monofuzz.trace.model import Trace
    from monofuzz.trace.record.tape import InPlace

__all__ = ["load_step", "record_step"]


def record_step(
    make: Callable[[], Any],
    *,
    fake: bool = False,
    device: str | None = None,
    inplace: InPlace = "view",
    warmup: int = 1,
    repeats: int = 5,
    **meta: Any,
) -> Trace:
    """Record a training step that a function sets up.

    ``make`` is called once. If it returns a function, that is the step; otherwise ``make`` itself
    is, and its first call was one of the ``warmup``. The step is called ``warmup`` times, so that
    the optimiser's state exists, and then recorded: ``repeats`` times if its operators are timed,
    each then costs its median; once if the cost is analytic. The other arguments are those of
    `record`.

    Raises `RecordError` when the step raises an error, or does something else each time.
    """
    if warmup < 0 or repeats < 1:
        raise UsageError(f"warmup is 0 or more and repeats 1 or more, not {warmup} and {repeats}")
    speeds = devices.device(device) if device is not None else None
    first = record(fake=fake, device=device, inplace=inplace)
    with _told("setting up the step"), first.building():
        made = make()
        step, calls = (made, warmup) if callable(made) else (make, warmup - 1)
        for _ in range(calls):
            step()
    del made
    recorder = first
    tapes = []
    for number in range(1 if fake or speeds is not None else repeats):
        if number:
            recorder = record(inplace=inplace)
        with _told("the step"):
            held = _run(recorder, step)
        tapes.append(recorder.tape)
        del held
    tape = median_costs(tapes)
    if not tape.operators:
        raise RecordError("the step used no tensor: there is nothing to record")
    assumed = devices.device("A100") if fake and speeds is None else speeds
    return tape.trace(
        **{
            "recorder": first.describe(),
            "cost_model": describe_costs(assumed, len(tapes)),
            **meta,
        }
    )


def load_step(target: str) -> Callable[[], Any]:
    """The function that ``FILE.py:function`` names; the file is executed. Raises `UsageError`."""
    path, colon, name = target.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise UsageError(f"{target!r}: expected FILE.py:function, such as train.py:make_step")
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"_monofuzz_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file: expected FILE.py:function")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with _told("the file"):
        spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        there = [key for key, value in vars(module).items() if callable(value)]
        raise UsageError(f"{path}: there is no function {name!r}{nearest(name, there)}")
    function: Callable[[], Any] = found
    return function


def _run(recorder: Recorder, step: Callable[[], Any]) -> object:
    """What the step returns is held until the recording is over: it is an output."""
    with recorder:
        return step()


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Turns whatever the user's code raises into one sentence that says where."""
    try:
        yield
    except MonofuzzError:
        raise
    except (Exception, SystemExit) as error:
        known = explain(error)
        if known is not None:
            raise known from error
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            raise ResourceError(
                "the step does not fit into the memory there is: record it with fake tensors "
                "(--fake), or with a smaller batch"
            ) from error
        place = user_frame(error)
        text = said(error)
        words = f"{type(error).__name__}: {text}" if text else type(error).__name__
        where = f"{place}: " if place else ""
        raise RecordError(
            f"{where}{what} raised {words}; nothing was recorded{_hint(error)}"
        ) from error


def _hint(error: BaseException) -> str:
    """What to try when it was the fake tensors that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    from_fake = bool(frames) and "_subclasses" in Path(frames[-1].filename).parts
    return ": fake tensors cannot do this, real ones may (without --fake)" if from_fake else ""
