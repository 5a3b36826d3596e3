"""A small GPT: pre-norm blocks, learned positions, tied embeddings.

Shapes: B batch, T tokens, C channels, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from bytes_lm.data import VOCABULARY


class Block(nn.Module):
    """Causal self-attention, then a feed-forward layer, each behind a norm and around a residual."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(channels)
        self.norm_feed = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.feed = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(), nn.Linear(4 * channels, channels))

    def forward(self, x_BTC: torch.Tensor) -> torch.Tensor:
        x_BTC = x_BTC + self.attend(self.norm_attention(x_BTC))
        return x_BTC + self.feed(self.norm_feed(x_BTC))

    def attend(self, x_BTC: torch.Tensor) -> torch.Tensor:
        batch, tokens, channels = x_BTC.shape
        split = [part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x_BTC).chunk(3, dim=-1)]
        mixed = functional.scaled_dot_product_attention(*split, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, channels))


class ByteGpt(nn.Module):
    """Logits of the next byte at every position."""

    def __init__(self, *, channels: int, heads: int, layers: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, channels)
        self.positions = nn.Embedding(context, channels)
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(channels)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        positions_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        x_BTC = self.tokens(tokens_BT) + self.positions(positions_T)
        for block in self.blocks:
            x_BTC = block(x_BTC)
        return self.norm(x_BTC) @ self.tokens.weight.T


def build(config: dict) -> ByteGpt:
    """The model that the hyperparameters describe, with freshly drawn weights."""
    return ByteGpt(
        channels=config["channels"], heads=config["heads"], layers=config["layers"], context=config["context"]
    )
