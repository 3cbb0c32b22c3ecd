"""`monofuzz record`, and `record_step` behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import monofuzz
from monofuzz.cli.main import cli
from monofuzz.errors import RecordError

torch = pytest.importorskip("torch", reason="recording needs torch")

TRAINING = """
import torch

def make_step():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(16, 4), torch.randn(16, 2)

    def step():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step

weight = torch.ones(8, requires_grad=True)

def the_step_itself():
    weight.grad = None
    weight.exp().sum().backward()

def branch():
    return lambda: weight + 1 if weight.sum() > 0 else None

def half_way():
    def step():
        weight + 1
        raise ValueError("no more data")
    return step

def leaves():
    raise SystemExit(1)

def elsewhere():
    return torch.ones(8, device="cuda")

calls = []

def another_each_time():
    def step():
        calls.append(1)
        return [weight + 1 for _ in calls]
    return step

def no_tensors():
    return lambda: 1 + 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place(text: str) -> str:
    """Where that text stands in the file."""
    return f"train.py:{TRAINING[: TRAINING.index(text)].count(chr(10)) + 1}: "


def run(*args: Any) -> Result:
    result = CliRunner().invoke(cli, ["record", *map(str, args)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def assert_refused(result: Result, folder: Path, *words: str) -> None:
    """One sentence with these words, exit code 2, nothing written."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr
    assert not list(folder.glob("*.trace*")) + list(folder.glob(".*tmp"))


def test_real_and_fake_are_the_same_but_for_costs(folder: Path) -> None:
    assert run("train.py:make_step", "--out", "real.trace", "--device", "A100").exit_code == 0
    result = run("train.py:make_step", "--out", "fake.trace", "--fake", "--json")
    found = json.loads(result.stdout)
    fake = monofuzz.load("fake.trace")
    assert fake == monofuzz.load("real.trace")
    assert found["digest"] == fake.digest
    assert found["operators"] == fake.n_operators
    assert found["peak"] == fake.meta.peak == monofuzz.peak_memory(fake)
    assert "fake tensors" in fake.meta.recorder
    assert torch.__version__ in fake.meta.recorder
    assert fake.meta.cost_model.startswith("roofline A100")
    assert fake.meta.name == "make_step"
    assert fake.meta.source == "train.py:make_step"


def test_a_kernel_may_hold_more_than_its_result() -> None:
    """PyTorch's mean squared error leaves its intermediate's storage to the loss on a CPU."""
    x, y = torch.ones(100), torch.ones(100)
    with monofuzz.record() as rec:
        loss = torch.nn.functional.mse_loss(x, y)
    assert rec.trace.tensor_size[-1] == loss.untyped_storage().nbytes()


def test_fake_recordings_are_equal_to_the_byte(folder: Path) -> None:
    for name in ("one.trace", "two.trace"):
        assert run("train.py:make_step", "--out", name, "--fake", "--device", "h100").exit_code == 0
    assert (folder / "one.trace").read_bytes() == (folder / "two.trace").read_bytes()


def test_measured_costs_are_medians(folder: Path) -> None:
    result = run("train.py:make_step", "--out", "x.trace", "--repeats", "3", "--batch", "16")
    assert result.exit_code == 0
    assert "measured, median of 3" in result.stdout
    trace = monofuzz.load("x.trace")
    assert trace.meta.batch == 16
    assert trace.model_compute > 0


def test_the_optimisers_state_is_constant(folder: Path) -> None:
    run("train.py:make_step", "--out", "x.trace", "--fake")
    trace = monofuzz.load("x.trace")
    sizes = sorted(
        int(trace.tensor_size[trace.out_ptr[op]]) for op in trace.op_constant.nonzero()[0]
    )
    weights = [128, 32, 64, 8]
    # Weights, two moments each, a step counter each; x and y.
    assert sizes == sorted(3 * weights + 4 * [4] + [256, 128])


def test_a_function_may_be_the_step_itself(folder: Path) -> None:
    run("train.py:the_step_itself", "--out", "x.trace", "--fake")
    labels = monofuzz.load("x.trace").op_label
    assert labels.count("aten::exp") == 1


def test_a_log_may_be_written(folder: Path) -> None:
    run("train.py:make_step", "--out", "x.log", "--fake")
    run("train.py:make_step", "--out", "x.trace", "--fake")
    assert monofuzz.load("x.log") == monofuzz.load("x.trace")


def test_a_branch_on_a_value(folder: Path) -> None:
    refused = run("train.py:branch", "--out", "x.trace", "--fake")
    assert_refused(
        refused, folder, place("weight.sum() > 0"), "reads the value of a tensor", "real tensors"
    )
    assert run("train.py:branch", "--out", "x.trace").exit_code == 0


def test_a_step_that_raises_half_way(folder: Path) -> None:
    (folder / "train.py").write_text(TRAINING + "\n", encoding="utf-8")
    refused = run("train.py:half_way", "--out", "x.trace", "--warmup", "0")
    assert_refused(refused, folder, place("raise"), "ValueError: no more data", "nothing was")


def test_a_program_that_leaves(folder: Path) -> None:
    refused = run("train.py:leaves", "--out", "x.trace")
    assert_refused(refused, folder, place("raise SystemExit"), "raised SystemExit: 1; nothing was")


def test_a_file_that_was_there_stays_as_it_was(folder: Path) -> None:
    before = b"what was there"
    for name in ("x.trace", "x.log.gz"):
        (folder / name).write_bytes(before)
        for function in ("half_way", "leaves", "another_each_time", "no_tensors", "branch"):
            fake = ["--fake"] if function == "branch" else []
            assert run(f"train.py:{function}", "--out", name, *fake).exit_code == 2
            assert (folder / name).read_bytes() == before
    assert not list(folder.glob(".*"))


def test_a_device_that_is_not_there(folder: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    refused = run("train.py:elsewhere", "--out", "x.trace")
    assert_refused(refused, folder, place("cuda"), "a device that is not there", "CPU")


def test_a_step_that_does_something_else_each_time(folder: Path) -> None:
    refused = run("train.py:another_each_time", "--out", "x.trace")
    assert_refused(refused, folder, "repetition 2", "repeats=1")


def test_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monofuzz.trace.record.tape.MAX_OPERATORS", 20)
    refused = run("train.py:make_step", "--out", "x.trace", "--fake")
    assert_refused(refused, folder, "more than 20 operators")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("train.py", "--out", "x.trace"), ("FILE.py:function",)),
        (("nowhere.py:f", "--out", "x.trace"), ("no such file",)),
        (("train.py:make_stop", "--out", "x.trace"), ("did you mean make_step",)),
        (("train.py:no_tensors", "--out", "x.trace"), ("used no tensor",)),
        (("train.py:make_step", "--out", "x.png"), ("cannot tell the format",)),
        (("train.py:make_step", "--out", "no/where.trace"), ("there is no folder",)),
        (("train.py:make_step", "--out", "x.trace", "--device", "A10"), ("did you mean A100",)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_wrong_use(folder: Path, args: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(run(*args), folder, *words)


def test_a_file_that_cannot_be_loaded(folder: Path) -> None:
    (folder / "broken.py").write_text("import torch\nraise KeyError('x')\n", encoding="utf-8")
    refused = run("broken.py:f", "--out", "x.trace")
    assert_refused(refused, folder, "broken.py:2", "the file raised KeyError")
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    assert_refused(run("broken.py:f", "--out", "x.trace"), folder, "SyntaxError")


def test_without_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    refused = run("train.py:make_step", "--out", "x.trace")
    assert_refused(refused, folder, "PyTorch, which is not installed", "monofuzz[torch]")


def test_meta_in_python() -> None:
    x = torch.ones(4)
    trace = monofuzz.record_step(lambda: lambda: x + 1, fake=False, device="CPU", name="plus")
    assert trace.meta.name == "plus"
    with pytest.raises(RecordError, match="raised ZeroDivisionError"):
        monofuzz.record_step(lambda: 1 / 0)
