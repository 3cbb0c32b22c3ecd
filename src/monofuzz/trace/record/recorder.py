"""The recorder as a context manager: what it is entered with, and what is known afterwards."""

from __future__ import annotations

import contextlib
import gc
import platform
import re
import sysconfig
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import monofuzz
from monofuzz.errors import MonofuzzError, RecordError, UsageError
from monofuzz.trace.record import devices

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from monofuzz.trace.model import Trace
    from monofuzz.trace.record.tape import InPlace, Tape

__all__ = [
    "Recorder",
    "describe_costs",
    "explain",
    "record",
    "require_torch",
    "said",
    "user_frame",
]

_HIGHER: Final = re.compile(r"There was no rule registered for HigherOrderOperator (\w+)")
_FAKE_DEVICE: Final = "A100"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


def record(
    *,
    fake: bool = False,
    device: str | None = None,
    inplace: InPlace = "view",
    **meta: Any,
) -> Recorder:
    """Record what happens inside a ``with`` block as a trace: ``with record() as rec: step()``.

    Storages that exist before and are used (weights, optimiser state, inputs) become constants;
    those that still exist after it (gradients, a loss that somebody holds) are kept.

    ``fake`` runs the step on fake tensors, which have shapes and no content: nothing is allocated
    and nothing computed. Everything that the step uses must then be made inside
    ``with rec.building():``. ``device`` is the machine whose speed an analytic cost assumes
    (A100, H100, RTX 4090, CPU; A100 if the step is fake); without one, operators are timed.
    ``inplace`` says how an update in place of an activation is written: as a ``view`` of its
    storage, or as a fresh ``copy``, as DTR's own logs do. ``meta`` are fields of `TraceMeta`: name,
    model, batch, source, note.

    Raises `RecordError` without PyTorch, and `UsageError` for arguments that make no sense.
    """
    if inplace not in ("view", "copy"):
        raise UsageError(f"inplace is 'view' or 'copy', not {inplace!r}")
    if device is None and fake:
        device = _FAKE_DEVICE
    return Recorder(fake, None if device is None else devices.device(device), inplace, meta)


class Recorder:
    """Records one step; made by `record`. ``trace`` is there once the ``with`` block is over."""

    def __init__(
        self, fake: bool, device: devices.Device | None, in_place: InPlace, meta: dict[str, Any]
    ) -> None:
        require_torch()
        self._in_place = in_place
        self._device = device
        self._meta = meta
        self._fake_mode = _new_fake_mode() if fake else None
        self._entered: contextlib.ExitStack | None = None
        self._mode: Any = None
        self._trouble = "nothing was recorded yet: use the recorder in a `with` block"
        self._trace: Trace | None = None

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """Inside, tensors are made as in the recording (fake ones, if it is), unrecorded.

        Functions of `torch.compile` run uncompiled: their kernels would read fake tensors' memory.
        """
        import torch

        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            if self._fake_mode is not None:
                stack.enter_context(warnings.catch_warnings())
                # Copying a fake tensor looks at its address, which PyTorch itself then warns of.
                warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
                stack.enter_context(self._fake_mode)
            yield

    def __enter__(self) -> Self:
        from torch._guards import detect_fake_mode

        from monofuzz.trace.record.mode import RecordingMode

        if self._mode is not None:
            raise UsageError("this recorder was used already: make another one")
        if self._fake_mode is None and detect_fake_mode() is not None:
            raise UsageError("a FakeTensorMode is on: leave it, and use record(fake=True) instead")
        self._mode = RecordingMode(self._in_place, self._device)
        with contextlib.ExitStack() as stack:
            # A collection at a time of its own choosing would free memory at another operator.
            gc.collect()
            if gc.isenabled():
                gc.disable()
                stack.callback(gc.enable)
            stack.enter_context(self.building())
            stack.enter_context(self._mode.watching())
            self._entered = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._entered is not None
        self._entered.close()
        if error is None:
            gc.collect()
        self._mode.close()
        if error is None:
            self._trouble = ""
            return
        self._trouble = f"the step raised {type(error).__name__} and was not recorded completely"
        translated = explain(error)
        if translated is not None:
            raise translated from error

    @property
    def tape(self) -> Tape:
        """What was recorded. Raises `RecordError` if there is nothing complete."""
        if self._trouble:
            raise RecordError(self._trouble)
        recorded: Tape = self._mode.tape
        return recorded

    @property
    def trace(self) -> Trace:
        """The recorded trace. Raises `RecordError` if there is none, `TraceError` if too large."""
        if self._trace is None:
            tape = self.tape
            if not tape.operators:
                raise RecordError("the step used no tensor: there is nothing to record")
            self._trace = tape.trace(
                **{
                    "recorder": self.describe(),
                    "cost_model": describe_costs(self._device, 1),
                    **self._meta,
                }
            )
        return self._trace

    def describe(self) -> str:
        """What recorded, and how, for a trace's metadata."""
        import torch

        tensors = "real tensors" if self._fake_mode is None else "fake tensors"
        return (
            f"monofuzz {monofuzz.__version__}, torch {torch.__version__}, "
            f"Python {platform.python_version()}, {tensors}, "
            f"activations updated in place: {self._in_place}"
        )


def describe_costs(device: devices.Device | None, repeats: int) -> str:
    """Where the costs come from, for a trace's metadata."""
    if device is not None:
        return device.describe()
    import torch

    how = "measured once" if repeats == 1 else f"measured, median of {repeats}"
    return f"{how}, {torch.get_num_threads()} threads, {platform.machine()}"


def require_torch() -> None:
    """Raise `RecordError` unless PyTorch can be imported."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise RecordError(
            "recording needs PyTorch, which is not installed: pip install 'monofuzz[torch]'"
        ) from None


def _new_fake_mode() -> Any:
    from monofuzz.trace.record.mode import FakeMode

    return FakeMode()


def user_frame(error: BaseException) -> str:
    """``FILE:LINE`` where the user's own code was last, or "" if it never was."""
    not_theirs = (str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"), "<frozen")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not (
            frame.filename.startswith(not_theirs) or _INSTALLED & {*Path(frame.filename).parts}
        ):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def said(error: BaseException) -> str:
    """The first line of what an error says, without a full stop."""
    return str(error).strip().partition("\n")[0].rstrip(".")


def explain(error: BaseException) -> MonofuzzError | None:
    """An error of the step that is about recording, in one sentence; None for any other."""
    from torch._subclasses import fake_tensor

    place = user_frame(error)
    where = f"{place}: " if place else ""
    if isinstance(error, RecordError):
        return RecordError(f"{where}{error}")
    if isinstance(error, fake_tensor.DataDependentOutputException):
        return RecordError(
            f"{where}the step reads the value of a tensor ({error.func}), and fake tensors have "
            "none: record it with real tensors, or without that branch"
        )
    if isinstance(error, fake_tensor.DynamicOutputShapeException):
        return RecordError(
            f"{where}the size of a result depends on the values of a tensor ({error.func}), and "
            "fake tensors have none: record it with real tensors"
        )
    text = said(error)
    if isinstance(error, RuntimeError) and text.startswith(".numpy() is not supported for tensor"):
        return RecordError(
            f"{where}the step turns a tensor into a NumPy array, and fake tensors have no values: "
            "record it with real tensors"
        )
    higher = _HIGHER.match(text)
    if isinstance(error, NotImplementedError) and higher:
        return RecordError(
            f"{where}the step uses {higher[1]}, an operator on functions, and these cannot be "
            "recorded: write what it does without it"
        )
    if isinstance(error, AssertionError) and "convert all Tensors to FakeTensors" in text:
        return RecordError(
            f"{where}the step uses a real tensor, made before the recording on fake ones began: "
            "make everything that it uses in the function that sets it up, or in rec.building()"
        )
    if isinstance(error, AssertionError | RuntimeError | NotImplementedError) and _is_absent(text):
        return RecordError(
            f"{where}the step uses a device that is not there ({text}): put the model "
            "and its inputs on the CPU; the speed of another device is assumed with --device"
        )
    return None


def _is_absent(text: str) -> bool:
    signs = (
        "not compiled with CUDA",
        "not linked with support for",
        "No CUDA GPUs are available",
        "Found no NVIDIA driver",
        "Cannot access accelerator device",
        "Expected one of cpu",
        "PyTorch is not linked",
        "Could not run 'aten::empty",
        "is not available",
        "doesn't support",
    )
    return any(sign in text for sign in signs)
