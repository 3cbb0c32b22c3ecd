"""Language models: encoders and decoders from transformers, without weights, and our own."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from training import Step, supervised, torchvision_models

# transformers imports torchvision where there is one.
with contextlib.suppress(ModuleNotFoundError):
    torchvision_models()


def _language(
    model: nn.Module, vocabulary: int, batch: int, length: int, *, causal: bool = True
) -> Step:
    """Next words, or masked words, by AdamW.

    Without a mask, transformers looks at the values of real tensors to find out which it is.
    """
    tokens = torch.randint(vocabulary, (batch, length))
    mask = torch.ones(1, 1, length, length, dtype=torch.bool).tril() if causal else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def loss_of(model: nn.Module) -> Any:
        return model(input_ids=tokens, attention_mask=mask, labels=tokens).loss

    return supervised(model, loss_of, optimizer)


def bert_base(batch: int = 32, length: int = 128) -> Step:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig()
    return _language(BertForMaskedLM(config), config.vocab_size, batch, length, causal=False)


def gpt2_small(batch: int = 8, length: int = 1024) -> Step:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(use_cache=False)
    return _language(GPT2LMHeadModel(config), config.vocab_size, batch, length)


def _llama(batch: int, length: int, **sizes: Any) -> Step:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(use_cache=False, max_position_embeddings=length, **sizes)
    # Made in its type: fake weights cannot be converted where they are.
    model = LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)
    return _language(model, config.vocab_size, batch, length)


def llama_blocks(batch: int = 4, length: int = 1024) -> Step:
    return _llama(
        batch,
        length,
        vocab_size=32_000,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=4,
    )


def llama_7b(batch: int = 1, length: int = 2048) -> Step:
    return _llama(
        batch,
        length,
        vocab_size=32_000,
        hidden_size=4096,
        intermediate_size=11_008,
        num_hidden_layers=32,
        num_attention_heads=32,
    )


# -- a mixture of experts -------------------------------------------------------------------------


class Experts(nn.Module):
    """Each token to its two best experts, as many to each as fit (Lepikhin et al., 2021)."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.experts = experts
        self.gate = nn.Linear(width, experts, bias=False)
        self.inner = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(experts))
        self.outer = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        capacity = 2 * len(tokens) // self.experts
        shares, chosen = torch.softmax(self.gate(tokens), dim=-1).topk(2, dim=-1)
        shares = shares / shares.sum(-1, keepdim=True)
        wanted = functional.one_hot(chosen, self.experts).sum(1)
        place = wanted.cumsum(0) * wanted
        output = torch.zeros_like(tokens)
        weight = torch.zeros(len(tokens), self.experts).scatter(1, chosen, shares)
        for number, (inner, outer) in enumerate(zip(self.inner, self.outer, strict=True)):
            # The first `capacity` tokens that want this expert; a static number of them.
            rows = (-place[:, number]).topk(capacity).indices
            made = outer(functional.gelu(inner(tokens[rows])))
            output = output.index_add(0, rows, made * weight[rows, number, None])
        return output.reshape(x.shape)


class Block(nn.Module):
    """Causal attention and experts, each behind a norm."""

    def __init__(self, width: int, heads: int, experts: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_qkv, self.from_heads = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.experts = Experts(width, experts)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.to_qkv(self.first_norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.from_heads(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.experts(self.second_norm(x))


class SparseDecoder(nn.Module):
    """A decoder with experts in every block."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, experts: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, heads, experts) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.words(tokens))))


def moe(batch: int = 8, length: int = 256, vocabulary: int = 32_000) -> Step:
    model = SparseDecoder(vocabulary, width=512, layers=4, heads=8, experts=8)
    tokens = torch.randint(vocabulary, (batch, length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def loss_of(model: nn.Module) -> Any:
        scores = model(tokens[:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())

    return supervised(model, loss_of, optimizer)
