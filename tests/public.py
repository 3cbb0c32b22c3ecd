"""The public DTR traces, for tests that need them; skipped by name where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monofuzz.errors import MonofuzzError
from monofuzz.trace import Trace, library, load

__all__ = ["MEMBERS", "public_trace"]

MEMBERS = {
    "dtr-resnet32": "resnet32-56-9000000000.0-2020-10-1-13-3-30-default.log",
    "dtr-unet": "unet-6-8000000000.0-2020-10-1-10-57-18-default.log",
    "dtr-densenet121": "tv_densenet121-84-10000000000.0-2020-10-1-13-41-18-default.log",
    "dtr-inceptionv4": "inceptionv4-64-10000000000.0-2020-10-1-10-55-0-default.log",
    "dtr-transformer": "transformer-10-8000000000.0-2020-10-1-10-56-5-default.log",
    "dtr-treelstm": "treelstm-6-8000000000.0-2020-10-1-12-54-1-default.log",
    "dtr-lstm": "lstm-128-11000000000.0-2020-10-1-16-38-52-default.log",
    "dtr-unrolled-gan": "unroll_gan-512-10000000000.0-2020-10-1-18-43-42-default.log",
}


def public_trace(name: str) -> Trace:
    """A public trace from the zip that MONOFUZZ_PUBLIC_TRACES names, or else from the library.

    Skips the test that asks when it is in neither.
    """
    path = os.environ.get("MONOFUZZ_PUBLIC_TRACES")
    if path:
        if not Path(path).is_file():
            pytest.skip(f"{name}: MONOFUZZ_PUBLIC_TRACES names no file")
        return load(f"{path}:{MEMBERS[name]}").with_meta(name=name)
    try:
        library.info(name)
    except MonofuzzError:
        pytest.skip(f"{name} is not here: `monofuzz traces fetch dtr`, or MONOFUZZ_PUBLIC_TRACES")
    return load(name)
