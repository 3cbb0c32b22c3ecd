"""What the training steps here have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["Step", "any_weights", "classification", "supervised", "torchvision_models"]

Step = Callable[[], object]


def supervised(
    model: nn.Module, loss_of: Callable[[nn.Module], Any], optimizer: torch.optim.Optimizer
) -> Step:
    """Forward, backward, update; the gradients and the loss are there afterwards."""
    model.train()

    def step() -> object:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def classification(model: nn.Module, batch: int, edge: int, classes: int) -> Step:
    """Images into classes, by stochastic gradient descent with momentum."""
    images = torch.randn(batch, 3, edge, edge)
    labels = torch.randint(classes, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)

    def loss_of(model: nn.Module) -> Any:
        return nn.functional.cross_entropy(model(images), labels)

    return supervised(model, loss_of, optimizer)


@contextlib.contextmanager
def any_weights() -> Iterator[None]:
    """Inside, truncated normal weights are left as they are: drawing them looks at values."""
    saved = nn.init.trunc_normal_
    nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
    try:
        yield
    finally:
        nn.init.trunc_normal_ = saved


def torchvision_models() -> Any:
    """``torchvision.models``, also beside a PyTorch that its compiled operators do not fit.

    No model here uses those operators; declaring them is enough for the import.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    for signature in ("nms", "qnms"):
        try:
            library.define(
                f"{signature}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        except RuntimeError:  # It fits, and they are there.
            continue
    _KEPT.append(library)
    import torchvision.models

    return torchvision.models


_KEPT: list[Any] = []
