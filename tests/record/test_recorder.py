"""Recordings of tiny steps, compared with traces written by hand."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest

import monofuzz
from monofuzz.errors import RecordError, UsageError
from monofuzz.replay import peak_memory
from monofuzz.trace import Trace, TraceBuilder
from tests.record.support import assert_same

torch = pytest.importorskip("torch", reason="recording needs torch")

Step = Callable[[], object]

FLOAT = 4


@pytest.fixture(params=["real", "fake"])
def record(request: pytest.FixtureRequest) -> Callable[..., Trace]:
    """Records what ``make()`` returns, on real or on fake tensors; both must give the same."""

    def recorded(make: Callable[[], Step], **how: Any) -> Trace:
        rec = monofuzz.record(fake=request.param == "fake", device="CPU", **how)
        with rec.building():
            step = make()
        with rec:
            held = step()
        del held
        trace = rec.trace
        assert trace.meta.peak == peak_memory(trace)
        return trace

    return recorded


def test_update_in_place_of_an_activation(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(8)
        return lambda: (x * 2).relu_().sum()

    build = TraceBuilder()
    x = build.constant(32)
    (h,) = build.op("aten::mul", [x], 32, 0)
    (r,) = build.op("aten::relu_", [h], 0, 0, views={0: 0})
    build.release(h)
    build.op("aten::sum", [r], FLOAT, 0)
    build.release(r)
    assert_same(record(make), build.finish())


def test_update_in_place_as_a_copy(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(8)
        return lambda: (x * 2).relu_().sum()

    build = TraceBuilder()
    x = build.constant(32)
    (h,) = build.op("aten::mul", [x], 32, 0)
    (r,) = build.mutate("aten::relu_", [h], [0], 0)
    build.op("aten::sum", [r], FLOAT, 0)
    build.release(r)
    trace = record(make, inplace="copy")
    assert_same(trace, build.finish())
    assert "copy" in trace.meta.recorder


def test_update_in_place_of_a_constant_is_a_view_either_way(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        weight, gradient = torch.ones(8), torch.ones(8)

        def step() -> None:
            weight.add_(gradient)
            weight.mul_(0.5)

        return step

    build = TraceBuilder()
    weight, gradient = build.constant(32), build.constant(32)
    (added,) = build.op("aten::add_", [weight, gradient], 0, 0, views={0: 0})
    build.release(weight)
    build.op("aten::mul_", [added], 0, 0, views={0: 0})
    build.release(added)
    expected = build.finish()
    assert_same(record(make, inplace="copy"), expected)
    assert_same(record(make, inplace="view"), expected)


def test_other_views_see_an_update_in_place(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(8)

        def step() -> Any:
            h = x * 2
            first = h[:4]
            first.zero_()
            return h + 1

        return step

    build = TraceBuilder()
    x = build.constant(32)
    (h,) = build.op("aten::mul", [x], 32, 0)
    (first,) = build.op("aten::slice", [h], 0, 0, views={0: 0})
    (zeroed,) = build.op("aten::zero_", [first], 0, 0, views={0: 0})
    build.release(h)
    build.op("aten::add", [zeroed], 32, 0)  # of h, whose content is now what zero_ left
    build.release(first)
    build.release(zeroed)
    assert_same(record(make), build.finish())


def test_views_and_split(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(4, 6)

        def step() -> Any:
            h = x + 1
            a, b = h.split(3, dim=1)
            del h
            return a.t() @ b

        return step

    build = TraceBuilder()
    x = build.constant(24 * FLOAT)
    (h,) = build.op("aten::add", [x], 24 * FLOAT, 0)
    a, b = build.op("aten::split", [h], [0, 0], 0, views={0: 0, 1: 0})
    (turned,) = build.op("aten::t", [a], 0, 0, views={0: 0})
    build.op("aten::mm", [turned, b], 9 * FLOAT, 0)
    for tensor in (h, a, b, turned):  # the storage lives until the last view of it is gone
        build.release(tensor)
    assert_same(record(make), build.finish())


def test_several_outputs(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(4, 6)
        return lambda: (x + 1).max(dim=1)[0]

    build = TraceBuilder()
    x = build.constant(24 * FLOAT)
    (h,) = build.op("aten::add", [x], 24 * FLOAT, 0)
    _, indices = build.op("aten::max", [h], [4 * FLOAT, 4 * 8], 0)
    build.release(h)
    build.release(indices)
    assert_same(record(make), build.finish())


def test_dropout(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x = torch.ones(8)
        return lambda: torch.nn.functional.dropout(x, 0.5)

    build = TraceBuilder()
    x = build.constant(32)
    (noise,) = build.op("aten::empty_like", [x], 32, 0)
    (drawn,) = build.op("aten::bernoulli_", [noise], 0, 0, views={0: 0})
    build.release(noise)
    (scaled,) = build.op("aten::div_", [drawn], 0, 0, views={0: 0})
    build.release(drawn)
    build.op("aten::mul", [x, scaled], 32, 0)
    build.release(scaled)
    assert_same(record(make), build.finish())


def test_gradient_accumulation(record: Callable[..., Trace]) -> None:
    """The second gradient is added into the first; the first stays where it is."""

    def make() -> Step:
        weight = torch.ones(8, requires_grad=True)
        x, y = torch.ones(8), torch.ones(8)
        one = torch.ones(8)

        def step() -> None:
            (weight * x).backward(one)
            (weight * y).backward(one)

        return step

    build = TraceBuilder()
    weight, x, one, y = (build.constant(32) for _ in range(4))
    (h,) = build.op("aten::mul", [weight, x], 32, 0)
    (first,) = build.op("aten::mul", [one, x], 32, 0)
    (kept,) = build.op("aten::detach", [first], 0, 0, views={0: 0})
    build.release(h)
    (h,) = build.op("aten::mul", [weight, y], 32, 0)
    (second,) = build.op("aten::mul", [one, y], 32, 0)
    build.op("aten::add_", [kept, second], 0, 0, views={0: 0})
    build.release(first)
    build.release(second)
    build.release(h)
    build.release(kept)
    assert_same(record(make), build.finish())


def test_checkpoint(record: Callable[..., Trace]) -> None:
    """The forward pass of the checkpointed part appears twice, and saves nothing the first time."""

    def make() -> Step:
        from torch.utils.checkpoint import checkpoint

        weight = torch.ones(8, requires_grad=True)
        one = torch.ones(8)

        def step() -> None:
            checkpoint(lambda w: w.exp().exp(), weight, use_reentrant=False).backward(one)

        return step

    build = TraceBuilder()
    weight, one = build.constant(32), build.constant(32)
    (h,) = build.op("aten::exp", [weight], 32, 0)
    (out,) = build.op("aten::exp", [h], 32, 0)
    build.release(h)
    (h,) = build.op("aten::exp", [weight], 32, 0)
    (saved,) = build.op("aten::detach", [h], 0, 0, views={0: 0})
    (again,) = build.op("aten::exp", [saved], 32, 0)
    (inner,) = build.op("aten::detach", [again], 0, 0, views={0: 0})
    (unpacked,) = build.op("aten::detach", [inner], 0, 0, views={0: 0})
    (gradient,) = build.op("aten::mul", [one, unpacked], 32, 0)
    for tensor in (again, inner, unpacked):
        build.release(tensor)
    (unpacked,) = build.op("aten::detach", [saved], 0, 0, views={0: 0})
    (total,) = build.op("aten::mul", [gradient, unpacked], 32, 0)
    for tensor in (h, saved, unpacked, gradient):
        build.release(tensor)
    (kept,) = build.op("aten::detach", [total], 0, 0, views={0: 0})
    build.release(out)
    build.release(kept)
    assert_same(record(make), build.finish())


def test_memory_is_released_when_it_is_freed_not_after_its_last_use(
    record: Callable[..., Trace],
) -> None:
    def make() -> Step:
        x = torch.ones(8)

        def step() -> Any:
            h = x + 1
            y = h * 2
            z = y * 3
            del h
            return z * 4

        return step

    build = TraceBuilder()
    x = build.constant(32)
    (h,) = build.op("aten::add", [x], 32, 0)
    (y,) = build.op("aten::mul", [h], 32, 0)
    (z,) = build.op("aten::mul", [y], 32, 0)
    build.release(h)
    build.op("aten::mul", [z], 32, 0)
    # The locals of the step go in the order in which Python drops them.
    build.release(y)
    build.release(z)
    assert_same(record(make), build.finish())


def test_a_number_that_becomes_a_tensor(record: Callable[..., Trace]) -> None:
    """It is made in the step, so it is no constant."""

    def make() -> Step:
        x = torch.ones(8)
        return lambda: x + torch.tensor(2.0)

    build = TraceBuilder()
    x = build.constant(32)
    (number,) = build.op("aten::lift_fresh", [], FLOAT, 0)
    build.op("aten::add", [x, number], 32, 0)
    build.release(number)
    assert_same(record(make), build.finish())


def test_reading_a_value() -> None:
    x = torch.ones(8)
    with monofuzz.record(device="CPU") as rec:
        (x + 1).sum().item()
    build = TraceBuilder()
    c = build.constant(32)
    (h,) = build.op("aten::add", [c], 32, 0)
    (total,) = build.op("aten::sum", [h], FLOAT, 0)
    build.release(h)
    (seen,) = build.op("aten::_local_scalar_dense", [total], 0, 0)
    build.release(seen)
    build.release(total)
    assert_same(rec.trace, build.finish())


def test_a_branch_on_a_value_needs_real_tensors() -> None:
    rec = monofuzz.record(fake=True)
    with rec.building():
        x = torch.ones(8)

    def step() -> None:
        if x.sum() > 0:
            x + 1

    with pytest.raises(RecordError, match=r"test_recorder\.py:\d+: the step reads the value"), rec:
        step()
    with pytest.raises(RecordError, match="not recorded completely"):
        rec.trace  # noqa: B018


def test_a_branch_on_a_value_of_real_tensors() -> None:
    """It was taken, because of a value that had to be there."""
    x = torch.ones(8)
    with monofuzz.record(device="CPU") as rec:
        out = x + 1 if x.sum() > 0 else x - 1
    del out
    build = TraceBuilder()
    c = build.constant(32)
    (total,) = build.op("aten::sum", [c], FLOAT, 0)
    (positive,) = build.op("aten::gt", [total], 1, 0)
    build.release(total)
    (seen,) = build.op("aten::_local_scalar_dense", [positive], 0, 0)
    build.release(seen)
    build.release(positive)
    build.op("aten::add", [c], 32, 0)
    assert_same(rec.trace, build.finish())


def test_a_result_whose_size_depends_on_values() -> None:
    rec = monofuzz.record(fake=True)
    with rec.building():
        x = torch.ones(8)
    with pytest.raises(RecordError, match="the size of a result depends on the values"), rec:
        x.nonzero()


def test_a_step_that_raises() -> None:
    x = torch.ones(8)
    rec = monofuzz.record()

    def step() -> None:
        x + 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), rec:
        step()
    with pytest.raises(RecordError, match="raised ZeroDivisionError"):
        rec.trace  # noqa: B018


def test_measured_costs() -> None:
    x = torch.ones(300, 300)
    with monofuzz.record() as rec:
        x @ x
    assert rec.trace.op_cost[-1] > 0
    assert "measured once" in rec.trace.meta.cost_model


def test_nothing_recorded() -> None:
    with pytest.raises(RecordError, match="nothing was recorded yet"):
        monofuzz.record().trace  # noqa: B018
    with monofuzz.record() as rec:
        pass
    with pytest.raises(RecordError, match="used no tensor"):
        rec.trace  # noqa: B018


def test_used_twice() -> None:
    rec = monofuzz.record()
    with rec:
        pass
    with pytest.raises(UsageError, match="used already"), rec:
        pass


def test_real_tensors_in_a_fake_recording() -> None:
    x = torch.ones(8)
    rec = monofuzz.record(fake=True)

    def step() -> None:
        x.add_(1)

    with (
        pytest.raises(RecordError, match=r"test_recorder.py:\d+: the step uses a real tensor"),
        rec,
    ):
        step()


def test_a_fake_mode_of_ones_own() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(UsageError, match="FakeTensorMode is on"):  # noqa: SIM117
        with monofuzz.record():
            pass


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match=r"did you mean H100"):
        monofuzz.record(device="H10")
    with pytest.raises(UsageError, match="'view' or 'copy'"):
        monofuzz.record(inplace="both")


def test_too_many_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monofuzz.trace.record.tape.MAX_OPERATORS", 3)
    x = torch.ones(8)
    with pytest.raises(RecordError, match="more than 3 operators"), monofuzz.record():
        x + 1 + 2 + 3 + 4


def test_a_sparse_tensor() -> None:
    words = r"test_recorder\.py:\d+: .* only dense tensors"
    with pytest.raises(RecordError, match=words), monofuzz.record():
        torch.eye(3).to_sparse()


def test_storages_that_grow() -> None:
    x = torch.ones(8)
    with monofuzz.record(device="CPU") as rec:
        out = torch.empty(0)
        torch.add(x, 1, out=out)
    build = TraceBuilder()
    c = build.constant(32)
    (empty,) = build.op("aten::empty", [], 0, 0)
    build.op("aten::add", [c, empty], 32, 0)
    build.release(empty)
    assert_same(rec.trace, build.finish())


def test_a_storage_that_is_given_up_for_another(record: Callable[..., Trace]) -> None:
    """It is freed by the very operator that reads it."""

    def make() -> Step:
        x, y = torch.ones(8), torch.ones(100)

        def step() -> Any:
            h, other = x + 1, y * 2
            h.set_(other)
            del other
            return h.sum()

        return step

    build = TraceBuilder()
    x, y = build.constant(32), build.constant(400)
    (h,) = build.op("aten::add", [x], 32, 0)
    (other,) = build.op("aten::mul", [y], 400, 0)
    (shown,) = build.op("aten::set_", [h, other], 0, 0, views={0: 1})
    build.release(h)
    build.op("aten::sum", [shown], FLOAT, 0)
    build.release(other)
    build.release(shown)
    assert_same(record(make), build.finish())


def test_storages_that_are_resized_without_an_operator(record: Callable[..., Trace]) -> None:
    """As sharded training frees weights and gathers them again."""
    resize = torch.UntypedStorage.resize_

    def make() -> Step:
        x = torch.ones(8)

        def step() -> Any:
            h = x + 1
            h.untyped_storage().resize_(0)
            other = x * 2
            h.untyped_storage().resize_(32)
            h.copy_(other)
            return h

        return step

    build = TraceBuilder()
    x = build.constant(32)
    (h,) = build.op("aten::add", [x], 32, 0)
    (empty,) = build.op("storage.resize_", [], 0, 0)
    build.release(h)
    (other,) = build.op("aten::mul", [x], 32, 0)
    (full,) = build.op("storage.resize_", [], 32, 0)
    build.release(empty)
    build.op("aten::copy_", [full, other], 0, 0, views={0: 0})
    build.release(full)
    build.release(other)
    assert_same(record(make), build.finish())
    assert torch.UntypedStorage.resize_ is resize


def test_a_compiled_function_is_recorded_as_it_was_written(record: Callable[..., Trace]) -> None:
    def never(graph: object, inputs: object) -> Any:
        raise AssertionError("compiled")

    def make() -> Step:
        weight = torch.ones(8, requires_grad=True)
        one = torch.ones(8)
        # On fake tensors, a compiled kernel would read memory that is not there.
        twice = torch.compile(lambda w: w.exp().exp(), backend=never)
        twice(weight)

        def step() -> None:
            twice(weight).backward(one)

        return step

    assert_same(record(make), record(_plain))


def _plain() -> Step:
    weight = torch.ones(8, requires_grad=True)
    one = torch.ones(8)

    def step() -> None:
        weight.exp().exp().backward(one)

    return step


def test_modules_may_be_copied_and_converted(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        first = torch.nn.Linear(2, 2).to("cpu").to(torch.bfloat16)
        second = copy.deepcopy(first)
        torch.optim.SGD(second.parameters())
        x = torch.ones(1, 2, dtype=torch.bfloat16)
        return lambda: second(first(x))

    trace = record(make)
    assert sorted(trace.tensor_size[: trace.n_ops - trace.n_operators]) == [4, 4, 4, 8, 8]


def test_tensors_that_are_made_of_others() -> None:
    """Of a ragged tensor, what it does with its plain ones is recorded."""
    a, b = torch.ones(3, 4), torch.ones(5, 4)
    with monofuzz.record(device="CPU") as rec:
        ragged = torch.nested.nested_tensor([a, b], layout=torch.jagged)
        out = (ragged * 2).sum()
        del ragged
    del out
    trace = rec.trace
    made = {label: trace.tensor_size[trace.out_ptr[op]] for op, label in enumerate(trace.op_label)}
    assert made["aten::cat"] in (4 * 32, 8 * 3)  # values or offsets
    assert made["aten::mul"] == 4 * 32
    assert made["aten::sum"] == 4
    assert trace.meta.peak == peak_memory(trace)


def test_numpy_needs_real_tensors() -> None:
    rec = monofuzz.record(fake=True)
    with rec.building():
        x = torch.ones(8)
    words = r"test_recorder\.py:\d+: the step turns a tensor into a NumPy array"
    with pytest.raises(RecordError, match=words), rec:
        x.numpy()


def test_operators_on_functions() -> None:
    x = torch.ones(8)
    words = r"test_recorder\.py:\d+: the step uses cond, an operator on functions"
    with pytest.raises(RecordError, match=words), monofuzz.record():
        torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_what_only_real_tensors_can_do() -> None:
    def pinned() -> object:
        return torch.ones(8).pin_memory()

    with pytest.raises(RecordError, match="fake tensors cannot do this, real ones may"):
        monofuzz.record_step(lambda: pinned, fake=True)


def test_an_operator_that_fails_and_is_caught(record: Callable[..., Trace]) -> None:
    def make() -> Step:
        x, y = torch.ones(8), torch.ones(3)

        def step() -> Any:
            with contextlib.suppress(RuntimeError):
                x + y
            return x + 1

        return step

    build = TraceBuilder()
    x, _ = build.constant(32), build.constant(12)
    build.op("aten::add", [x], 32, 0)
    assert_same(record(make), build.finish())


def test_the_collector_is_off_while_recording() -> None:
    import gc

    assert gc.isenabled()
    with monofuzz.record():
        assert not gc.isenabled()
    assert gc.isenabled()
