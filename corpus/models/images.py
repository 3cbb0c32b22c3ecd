"""Image models: classification, segmentation, a diffusion model's denoiser."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from training import Step, any_weights, classification, supervised, torchvision_models

# -- classification -------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut that pads channels with zeros (He et al., 2016)."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.stride, self.padding = stride, outer - inner
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outer)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        if self.padding or self.stride > 1:
            half = self.padding // 2
            x = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, half))
        return functional.relu(x + y, inplace=True)


class SmallResNet(nn.Module):
    """A residual network for 32x32 images, three stages of ``blocks`` blocks."""

    def __init__(self, blocks: int, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)
        )
        layers, inner = [], 16
        for stage, outer in enumerate((16, 32, 64)):
            for block in range(blocks):
                layers.append(ResidualBlock(inner, outer, 2 if stage and not block else 1))
                inner = outer
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.stem(x)).mean((2, 3)))


def resnet32(batch: int = 128) -> Step:
    return classification(SmallResNet(5), batch, 32, 10)


def resnet50(batch: int = 64) -> Step:
    return classification(torchvision_models().resnet50(), batch, 224, 1000)


def densenet121(batch: int = 32) -> Step:
    return classification(torchvision_models().densenet121(), batch, 224, 1000)


def mobilenet_v3(batch: int = 128) -> Step:
    return classification(torchvision_models().mobilenet_v3_large(), batch, 224, 1000)


def vit_b16(batch: int = 64) -> Step:
    with any_weights():
        model = torchvision_models().vit_b_16()
    return classification(model, batch, 224, 1000)


def inception_v3(batch: int = 32) -> Step:
    model = torchvision_models().inception_v3(init_weights=False)
    images, labels = torch.randn(batch, 3, 299, 299), torch.randint(1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)

    def loss_of(model: nn.Module) -> Any:
        scores, auxiliary = model(images)
        loss = functional.cross_entropy(scores, labels)
        return loss + 0.4 * functional.cross_entropy(auxiliary, labels)

    return supervised(model, loss_of, optimizer)


# -- segmentation ---------------------------------------------------------------------------------


def _double(inner: int, outer: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inner, outer):
        layers += [
            nn.Conv2d(channels, outer, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """A U-Net with four levels (Ronneberger et al., 2015), padded convolutions."""

    def __init__(self, classes: int, width: int = 64) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(5)]
        self.down = nn.ModuleList(
            _double(inner, outer) for inner, outer in zip([3, *widths], widths, strict=False)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(_double(a, b) for a, b in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        passed = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else functional.max_pool2d(x, 2))
            passed.append(x)
        passed.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([passed.pop(), up(x)], dim=1))
        return self.head(x)


def unet(batch: int = 8, height: int = 256, width: int = 384) -> Step:
    model = UNet(classes=2)
    images = torch.randn(batch, 3, height, width)
    masks = torch.randint(2, (batch, height, width))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)

    def loss_of(model: nn.Module) -> Any:
        return functional.cross_entropy(model(images), masks)

    return supervised(model, loss_of, optimizer)


# -- diffusion ------------------------------------------------------------------------------------


class TimedBlock(nn.Module):
    """A residual block that is told the time, with attention over all pixels if wanted."""

    def __init__(self, inner: int, outer: int, time: int, *, attention: bool) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(32, inner)
        self.first = nn.Conv2d(inner, outer, 3, 1, 1)
        self.time = nn.Linear(time, outer)
        self.second_norm = nn.GroupNorm(32, outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()
        self.attention_norm = nn.GroupNorm(32, outer) if attention else None
        if attention:
            self.to_qkv = nn.Conv2d(outer, 3 * outer, 1)
            self.from_attention = nn.Conv2d(outer, outer, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(functional.silu(self.first_norm(x)))
        y = y + self.time(functional.silu(time))[:, :, None, None]
        y = self.second(functional.dropout(functional.silu(self.second_norm(y)), 0.1))
        y = y + self.shortcut(x)
        if self.attention_norm is None:
            return y
        batch, channels, height, width = y.shape
        qkv = self.to_qkv(self.attention_norm(y)).view(batch, 3, channels, height * width)
        q, k, v = qkv.transpose(2, 3).unbind(1)
        seen = torch.softmax(q @ k.transpose(1, 2) * channels**-0.5, dim=-1) @ v
        return y + self.from_attention(seen.transpose(1, 2).reshape(y.shape))


class Denoiser(nn.Module):
    """The U-Net of denoising diffusion for 32x32 images (Ho et al., 2020)."""

    def __init__(self, width: int = 128, blocks: int = 2) -> None:
        super().__init__()
        self.width, time = width, 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        widths = [width, 2 * width, 2 * width, 2 * width]
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        made, inner = [width], width
        for level, outer in enumerate(widths):
            for _ in range(blocks):
                self.down.append(TimedBlock(inner, outer, time, attention=level == 1))
                made.append(inner := outer)
            if level < len(widths) - 1:
                self.down.append(nn.Conv2d(inner, inner, 3, 2, 1))
                made.append(inner)
        self.middle = nn.ModuleList(
            TimedBlock(inner, inner, time, attention=first) for first in (True, False)
        )
        for level, outer in reversed(list(enumerate(widths))):
            for _ in range(blocks + 1):
                self.up.append(TimedBlock(inner + made.pop(), outer, time, attention=level == 1))
                inner = outer
            if level:
                self.up.append(nn.Conv2d(inner, inner, 3, 1, 1))
        self.head_norm, self.head = nn.GroupNorm(32, inner), nn.Conv2d(inner, 3, 3, 1, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        half = self.width // 2
        rates = torch.exp(torch.arange(half) * (-math.log(10_000.0) / half))
        angles = time[:, None] * rates[None, :]
        known = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        x = self.stem(x)
        passed = [x]
        for block in self.down:
            x = block(x, known) if isinstance(block, TimedBlock) else block(x)
            passed.append(x)
        for block in self.middle:
            x = block(x, known)
        for block in self.up:
            if isinstance(block, TimedBlock):
                x = block(torch.cat([x, passed.pop()], dim=1), known)
            else:
                x = block(functional.interpolate(x, scale_factor=2.0))
        return self.head(functional.silu(self.head_norm(x)))


def diffusion_unet(batch: int = 32) -> Step:
    model = Denoiser()
    images, time = torch.randn(batch, 3, 32, 32), torch.rand(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)

    def loss_of(model: nn.Module) -> Any:
        noise = torch.randn_like(images)
        kept = time[:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        return (model(noisy, 1000 * time) - noise).square().mean()

    return supervised(model, loss_of, optimizer)
