"""Models that unroll: recurrences over time and trees, a state-space scan, an unrolled GAN."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from training import Step, supervised

# -- LSTM -----------------------------------------------------------------------------------------


class Lstm(nn.Module):
    """One layer, unrolled over time, with a prediction from its last state."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell, self.head = nn.LSTMCell(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        h = c = torch.zeros(x.shape[1], self.hidden)
        for now in x:
            h, c = self.cell(now, (h, c))
        return self.head(h)


def lstm(batch: int = 64, steps: int = 64) -> Step:
    model = Lstm(512, 1024)
    x, y = torch.randn(steps, batch, 512), torch.randn(batch, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    return supervised(model, lambda model: (model(x) - y).square().mean(), optimizer)


# -- TreeLSTM -------------------------------------------------------------------------------------


class TreeLstm(nn.Module):
    """A binary tree from its leaves up (Tai et al., 2015); both children have forget gates."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.leaf = nn.Linear(width, 3 * hidden)
        self.inner = nn.Linear(2 * hidden, 5 * hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, leaves: Tensor) -> Tensor:
        level = []
        for x in leaves:
            i, o, u = self.leaf(x).chunk(3, dim=-1)
            c = torch.sigmoid(i) * torch.tanh(u)
            level.append((torch.sigmoid(o) * torch.tanh(c), c))
        while len(level) > 1:
            level = [self._join(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
        return self.head(level[0][0])

    def _join(
        self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        gates = self.inner(torch.cat([left[0], right[0]], dim=-1))
        i, o, u, f, g = gates.chunk(5, dim=-1)
        c = torch.sigmoid(i) * torch.tanh(u)
        c = c + torch.sigmoid(f) * left[1] + torch.sigmoid(g) * right[1]
        return torch.sigmoid(o) * torch.tanh(c), c


def treelstm(batch: int = 32, depth: int = 6) -> Step:
    model = TreeLstm(300, 256, 5)
    leaves, labels = torch.randn(2**depth, batch, 300), torch.randint(5, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)

    def loss_of(model: nn.Module) -> Any:
        return functional.cross_entropy(model(leaves), labels)

    return supervised(model, loss_of, optimizer)


# -- state-space scan -----------------------------------------------------------------------------


class Selective(nn.Module):
    """A selective state space (Gu and Dao, 2023), scanned step by step."""

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        inner = 2 * width
        self.states = states
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 2 * inner, bias=False)
        self.mix = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.select = nn.Linear(inner, 2 * states + 1, bias=False)
        self.pace = nn.Parameter(torch.zeros(inner))
        self.decay = nn.Parameter(torch.zeros(inner, states))
        self.leave = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        u, gate = self.enter(self.norm(x)).chunk(2, dim=-1)
        u = functional.silu(self.mix(u.transpose(1, 2))[..., :length].transpose(1, 2))
        pace, to_state, from_state = self.select(u).split([1, self.states, self.states], dim=-1)
        pace = functional.softplus(pace + self.pace)
        kept = -torch.exp(self.decay)
        state = torch.zeros(x.shape[0], u.shape[-1], self.states)
        seen = []
        for t in range(length):
            share = pace[:, t, :, None]
            state = (
                torch.exp(share * kept) * state + (share * u[:, t, :, None]) * to_state[:, t, None]
            )
            seen.append((state * from_state[:, t, None]).sum(-1))
        return x + self.leave(torch.stack(seen, dim=1) * functional.silu(gate))


def ssm_scan(batch: int = 16, length: int = 64, vocabulary: int = 256) -> Step:
    width = 256
    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        *(Selective(width, 16) for _ in range(2)),
        nn.LayerNorm(width),
        nn.Linear(width, vocabulary),
    )
    tokens = torch.randint(vocabulary, (batch, length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def loss_of(model: nn.Module) -> Any:
        scores = model(tokens[:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())

    return supervised(model, loss_of, optimizer)


# -- unrolled GAN ---------------------------------------------------------------------------------


def _network(*widths: int) -> list[Tensor]:
    made = []
    for inner, outer in itertools.pairwise(widths):
        made.append((torch.randn(outer, inner) * inner**-0.5).requires_grad_())
        made.append(torch.zeros(outer, requires_grad=True))
    return made


def _apply(weights: list[Tensor], x: Tensor) -> Tensor:
    for i in range(0, len(weights), 2):
        x = functional.linear(x, weights[i], weights[i + 1])
        if i + 2 < len(weights):
            x = torch.tanh(x)
    return x


def unrolled_gan(batch: int = 512, unroll: int = 10) -> Step:
    """The generator learns through ``unroll`` steps of the discriminator (Metz et al., 2017)."""
    generator, discriminator = _network(256, 512, 512, 2), _network(2, 512, 512, 1)
    noise, real = torch.randn(batch, 256), torch.randn(batch, 2)
    optimizer = torch.optim.SGD(generator, lr=0.01, foreach=False)

    def verdicts(weights: list[Tensor], made: Tensor) -> Tensor:
        true, false = _apply(weights, real), _apply(weights, made)
        return functional.softplus(-true).mean() + functional.softplus(false).mean()

    def step() -> object:
        optimizer.zero_grad()
        made = _apply(generator, noise)
        weights = discriminator
        for _ in range(unroll):
            slopes = torch.autograd.grad(verdicts(weights, made), weights, create_graph=True)
            weights = [w - 0.1 * s for w, s in zip(weights, slopes, strict=True)]
        loss = -verdicts(weights, made)
        loss.backward(inputs=generator)
        optimizer.step()
        return loss

    return step
