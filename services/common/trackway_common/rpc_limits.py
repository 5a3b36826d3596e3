"""What both ends of a gRPC connection have to agree on."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 8 << 20
"""A dataset's manifest and an explanation travel in one message."""

MESSAGE_LIMITS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
"""Options of every channel and every server."""
