"""Ways to die in native code, for real."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile

UNDEFINED = b"\x0f\x0b\x00\x00"
"""ud2 on x86-64, udf on AArch64."""


def null_pointer() -> None:
    """SIGSEGV."""
    ctypes.string_at(0)


def native_stack_overflow() -> None:
    """SIGSEGV: repr() of a deeply nested list recurses in C, and nothing limits it."""
    sys.setrecursionlimit(10**9)
    nested: list[object] = []
    for _ in range(2_000_000):
        nested = [nested]
    repr(nested)


def bus_error() -> None:
    """SIGBUS: the page lies behind the file's end."""
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 16)
        mapped = mmap.mmap(file.fileno(), 1 << 16)
        os.truncate(file.fileno(), 0)
        mapped[1 << 15]


def illegal_instruction() -> None:
    """SIGILL."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(UNDEFINED)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(None)(address)()


def abort() -> None:
    """SIGABRT."""
    os.abort()
