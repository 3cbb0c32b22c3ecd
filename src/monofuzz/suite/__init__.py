"""Tests of policies and runtimes: on traces, on the corpus, on generated graphs.

What the pytest plugin calls; `examine` is one test.
"""

from __future__ import annotations

from monofuzz.suite.examine import examine
from monofuzz.suite.places import CORPUS, GENERATED, Place, default_places, place
from monofuzz.suite.result import Breach, Result
from monofuzz.suite.settings import Settings
from monofuzz.suite.subject import Subject

__all__ = [
    "CORPUS",
    "GENERATED",
    "Breach",
    "Place",
    "Result",
    "Settings",
    "Subject",
    "default_places",
    "examine",
    "place",
]
