"""A small GPT over bytes: pre-norm blocks, learned positions, tied to nothing but torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What decides the parameters."""

    context: int
    d_model: int
    layers: int
    heads: int


class Block(nn.Module):
    """Attention to what came before, then a step for each position alone."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.before_attention = nn.LayerNorm(shape.d_model)
        self.qkv = nn.Linear(shape.d_model, 3 * shape.d_model, bias=False)
        self.out = nn.Linear(shape.d_model, shape.d_model, bias=False)
        self.before_mlp = nn.LayerNorm(shape.d_model)
        self.up = nn.Linear(shape.d_model, 4 * shape.d_model)
        self.down = nn.Linear(4 * shape.d_model, shape.d_model)

    def forward(self, x_BTD: torch.Tensor) -> torch.Tensor:
        x_BTD = x_BTD + self.attend(self.before_attention(x_BTD))
        return x_BTD + self.down(functional.gelu(self.up(self.before_mlp(x_BTD))))

    def attend(self, x_BTD: torch.Tensor) -> torch.Tensor:
        batch, length, width = x_BTD.shape
        split = (batch, length, self.heads, width // self.heads)
        q_BHTK, k_BHTK, v_BHTK = (part.view(split).transpose(1, 2) for part in self.qkv(x_BTD).chunk(3, dim=-1))
        y_BHTK = functional.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, is_causal=True)
        return self.out(y_BHTK.transpose(1, 2).reshape(batch, length, width))


class ByteGPT(nn.Module):
    """``model(tokens_BT) -> logits_BTV``, for at most ``context`` tokens."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, shape.d_model)
        self.position = nn.Embedding(shape.context, shape.d_model)
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))
        self.last_norm = nn.LayerNorm(shape.d_model)
        self.head = nn.Linear(shape.d_model, VOCABULARY, bias=False)
        self.apply(_initialise)

    def forward(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        positions_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        x_BTD = self.embed(tokens_BT) + self.position(positions_T)
        return self.head(self.last_norm(self.blocks(x_BTD)))


def build(config: Mapping[str, int]) -> ByteGPT:
    """The model of a run's hyperparameters; training and evaluation both begin here."""
    names = ("context", "d_model", "layers", "heads")
    return ByteGPT(Shape(**{name: int(config[name]) for name in names}))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
