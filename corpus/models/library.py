"""The library of traces that come with monofuzz, and how each was recorded.

Run from a checkout, with torch, torchvision and transformers installed::

    python corpus/models/library.py [--check] [NAME...]

records the traces into ``src/monofuzz/trace/data``; with ``--check`` it compares instead, byte by
byte. Recordings are fake: they need no memory to speak of, and come out the same each time with the
versions that their metadata names.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monofuzz.trace import Trace

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "src" / "monofuzz" / "trace" / "data"


@dataclass(frozen=True)
class Entry:
    """A trace of the library: the function that sets its step up, and what to say of it."""

    target: str
    model: str
    batch: int


ENTRIES = {
    "resnet32": Entry("images.py:resnet32", "ResNet-32, batch 128, 32x32", 128),
    "resnet50": Entry("images.py:resnet50", "ResNet-50, batch 64, 224x224", 64),
    "densenet121": Entry("images.py:densenet121", "DenseNet-121, batch 32, 224x224", 32),
    "inception-v3": Entry("images.py:inception_v3", "Inception v3, batch 32, 299x299", 32),
    "mobilenet-v3": Entry("images.py:mobilenet_v3", "MobileNetV3 large, batch 128, 224x224", 128),
    "unet": Entry("images.py:unet", "U-Net, batch 8, 256x384", 8),
    "vit-b16": Entry("images.py:vit_b16", "ViT-B/16, batch 64, 224x224", 64),
    "diffusion-unet": Entry("images.py:diffusion_unet", "DDPM U-Net, batch 32, 32x32", 32),
    "bert-base": Entry("language.py:bert_base", "BERT base, batch 32, 128 tokens", 32),
    "gpt2-small": Entry("language.py:gpt2_small", "GPT-2 small, batch 8, 1024 tokens", 8),
    "llama-blocks": Entry(
        "language.py:llama_blocks", "8 Llama blocks of width 1024, batch 4, 1024 tokens, bf16", 4
    ),
    "llama-7b": Entry("language.py:llama_7b", "Llama 7B, batch 1, 2048 tokens, bf16", 1),
    "moe": Entry("language.py:moe", "mixture of 8 experts, 4 layers, batch 8, 256 tokens", 8),
    "lstm": Entry("recurrent.py:lstm", "LSTM, 512 to 1024, batch 64, 64 steps", 64),
    "treelstm": Entry("recurrent.py:treelstm", "TreeLSTM, 64 leaves, batch 32", 32),
    "ssm-scan": Entry(
        "recurrent.py:ssm_scan", "2 selective state-space layers, batch 16, 64 steps", 16
    ),
    "unrolled-gan": Entry(
        "recurrent.py:unrolled_gan", "GAN, 10 unrolled discriminator steps, batch 512", 512
    ),
}


def record(name: str) -> Trace:
    """Record one of the traces."""
    from monofuzz.trace.record import load_step, record_step

    entry = ENTRIES[name]
    load = functools.cache(load_step)

    def make() -> Any:
        import torch

        torch.manual_seed(0)
        return load(str(HERE / entry.target))()

    return record_step(
        make,
        fake=True,
        device="A100",
        name=name,
        model=entry.model,
        batch=entry.batch,
        source=f"corpus/models/{entry.target}",
    )


def main() -> int:
    from monofuzz.trace import container

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*ENTRIES, []])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    different = 0
    for name in options.names or ENTRIES:
        begin = time.perf_counter()
        trace = record(name)
        packed = container.pack(trace)
        file = TARGET / f"{name}.trace"
        if not options.check:
            container.save(trace, file)
            state = f"{len(packed):,} bytes"
        elif file.exists() and file.read_bytes() == packed:
            state = "the same"
        else:
            state, different = "different", different + 1
        seconds = time.perf_counter() - begin
        print(
            f"{name:16}{trace.n_operators:7,} operators {trace.meta.peak or 0:16,} bytes peak  "
            f"{state}  {seconds:.0f} s"
        )
    total = sum(os.path.getsize(path) for path in TARGET.glob("*.trace"))
    print(f"{total:,} bytes in all")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
