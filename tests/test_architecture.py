"""What the architecture promises about imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import monofuzz

PACKAGE = Path(monofuzz.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Each may import itself and what stands before it.
ORDER = (
    "errors",
    "budget",
    "trace",
    "canonical",
    "replay",
    "search",
    "systems",
    "counterexample",
    "generate",
    "shrink",
    "explain",
    "hunt",
    "suite",
    "report",
    "pytest_plugin",
    "cli",
    "__main__",
)
HELP = """
import contextlib
from monofuzz.cli.main import cli
with contextlib.suppress(SystemExit):
    cli(["--help"])
"""
HEAVY = ("numba", "matplotlib", "networkx", "scipy", "llvmlite")


def rank(module: str) -> int:
    """The place of `monofuzz.x.y` in the order; the package itself is before all."""
    parts = module.split(".")
    return ORDER.index(parts[1]) if len(parts) > 1 and parts[1] in ORDER else -1


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.append(node.module)
            if node.module == "monofuzz":
                found += [f"monofuzz.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_imports_to_its_right(path: Path) -> None:
    name = name_of(path)
    if name == "monofuzz":
        pytest.skip("the public interface looks names up everywhere, when they are used")
    own = rank(name)
    later = [other for other in imports(path) if other.startswith("monofuzz") and rank(other) > own]
    assert not later, f"{name} imports to its right"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_has_its_place(path: Path) -> None:
    name = name_of(path)
    assert name == "monofuzz" or rank(name) >= 0, f"{name} is not in ORDER"


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import monofuzz",
        "import monofuzz.cli.main",
        "import monofuzz.trace",
        HELP,
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    loaded = run(f"import sys\n{code}\nprint('LOADED', *sys.modules)").split("LOADED")[1].split()
    assert not set(HEAVY) & set(loaded)


def test_the_public_interface_is_there() -> None:
    for name in monofuzz.__all__:
        assert getattr(monofuzz, name) is not None
    assert set(monofuzz.__all__) <= set(dir(monofuzz))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        monofuzz.nonsense  # noqa: B018
