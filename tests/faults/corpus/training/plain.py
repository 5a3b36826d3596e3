"""Programs without torch and without the SDK, one per fault; as a function and as a script."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import http.server
import os
import resource
import signal
import sys
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

import native
from given import ATTEMPT, KIND, MEETING, RANK, await_word, ready, wait_for_the_end

MIB = 1 << 20


class BadRow(Exception):
    """A row of the data does not parse."""

    trackway_reason = "DATA_CORRUPT"


class ColumnsDiffer(Exception):
    """The data has other columns than the contract."""

    trackway_reason = "DATA_SCHEMA_DRIFT"


class BadShape(Exception):
    """The model can't be built from these hyperparameters."""

    trackway_reason = "CONFIG_INVALID"


def raises() -> None:
    raise ValueError("bad learning rate: -1.0")


def groups() -> None:
    async def fails(what: str) -> None:
        await asyncio.sleep(0)
        raise ValueError(what)

    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fails("left"))
            tasks.create_task(fails("right"))

    asyncio.run(both())


def recurses() -> None:
    recurses()


def leaves_silently() -> None:
    sys.exit(3)


def leaves_garbage() -> None:
    Path(os.environ["TRACKWAY_ERROR_FILE"]).write_bytes(os.urandom(4096))
    sys.exit(1)


def says_too_much() -> None:
    raise ValueError("x" * 50 * MIB)


def floods() -> None:
    until, line = time.monotonic() + 2.0, "y" * 4000
    while time.monotonic() < until:
        print(line)
    raise ValueError("after the flood")


def misleads() -> None:
    print("hint: CUDA out of memory may be caused by a large micro-batch", file=sys.stderr)
    print("hint: keep an eye on 'No space left on device'; see the manual", file=sys.stderr)
    raise ValueError("bad shape")


def cublas() -> None:
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def ecc() -> None:
    raise RuntimeError("CUDA error: uncorrectable ECC error encountered")


def native_oom() -> None:
    print("terminate called after throwing an instance of 'c10::Error'", file=sys.stderr)
    print("  what():  CUDA error: out of memory", file=sys.stderr, flush=True)
    native.abort()


def watchdog() -> None:
    work = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000)"
    said = f"Watchdog caught collective operation timeout: {work} ran for 600011 milliseconds before timing out."
    print(said, file=sys.stderr, flush=True)
    native.abort()


def address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2048 * MIB, 2048 * MIB))
    bytearray(4096 * MIB)


def outgrows() -> None:
    """Waits to be put into a cgroup, then takes memory until the kernel ends it."""
    ready()
    await_word("go")
    held = []
    while True:
        held.append(bytearray(os.urandom(4096) * 1024))


def fills_disk() -> None:
    ready()
    with (MEETING / "disk/big").open("wb", buffering=0) as file:
        for _ in range(64):
            file.write(bytes(MIB))


def fills_shared_memory() -> None:
    with Path("/dev/shm/segment").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 8 * MIB)


def asks_busy_store() -> None:
    class Busy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503, "Slow Down")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/bucket/shard-0")


def bad_row() -> None:
    raise BadRow("part2.txt, row 17: 'seven' is no number")


def columns_differ() -> None:
    raise ColumnsDiffer("expected text:string label:int64, found text:string score:double")


def bad_shape() -> None:
    raise BadShape("embed_dim 100 must be divisible by num_heads 7")


def undecodable() -> None:
    shard = MEETING / "shard.txt"
    shard.write_bytes(b"caf\xe9 au lait\n")
    shard.read_text(encoding="utf-8")


def truncated_parquet() -> None:
    import pyarrow as pa
    from pyarrow import parquet

    shard = MEETING / "shard.parquet"
    parquet.write_table(pa.table({"text": ["a", "b"]}), shard)
    shard.write_bytes(shard.read_bytes()[:-8])
    parquet.read_table(shard)


def truncated_gzip() -> None:
    shard = MEETING / "shard.gz"
    shard.write_bytes(gzip.compress(os.urandom(4096))[:-100])
    with gzip.open(shard) as file:
        file.read()


def drifted_table() -> None:
    import pyarrow as pa

    expected = pa.schema([("text", pa.string()), ("label", pa.int64())])
    pa.table({"text": ["a"], "score": [0.5]}).cast(expected)


def loss_guard() -> None:
    raise FloatingPointError("loss is nan at step 7")


def arguments() -> None:
    parser = argparse.ArgumentParser(prog="plain.py")
    parser.add_argument("--steps", type=int)
    parser.parse_args()


def handles() -> None:
    try:
        raises()
    except ValueError:
        traceback.print_exc()


def handles_then_waits() -> None:
    handles()
    wait_for_the_end()


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait_for_the_end()


def out_of_memory_when_told() -> None:
    def refuse(_number: int, _frame: object) -> None:
        raise MemoryError("no room for the last checkpoint")

    signal.signal(signal.SIGTERM, refuse)
    wait_for_the_end()


def device_oom_when_told() -> None:
    """What a program says whose device goes away under it, and then it hangs on to its life."""

    def tell(_number: int, _frame: object) -> None:
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, tell)
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", file=sys.stderr, flush=True)
    wait_for_the_end()


def raises_and_the_other_crashes() -> None:
    if RANK == 0:
        signal.signal(signal.SIGTERM, lambda _number, _frame: native.null_pointer())
        wait_for_the_end()
    ready()
    await_word(f"ready-{ATTEMPT}-0")
    raise ValueError("bad shape")


def keeps_a_folder() -> None:
    """Leaves a checkpoint in its first attempt; the second begins with it."""
    if ATTEMPT > 1:
        print(f"goes on from {os.environ.get('TRACKWAY_RESUME_FROM')}")
        return
    unfinished = Path(os.environ["TRACKWAY_CHECKPOINT_DIR"], "1.unfinished")
    unfinished.mkdir()
    for name in ("weights.bin", "state.bin"):
        (unfinished / name).write_bytes(os.urandom(4096))
    unfinished.rename(unfinished.with_name("1"))
    wait_for_the_end()


KINDS: dict[str, Callable[[], None]] = {
    "raise": raises,
    "group": groups,
    "recurse": recurses,
    "leave": leaves_silently,
    "garbage": leaves_garbage,
    "shout": says_too_much,
    "flood": floods,
    "mislead": misleads,
    "cublas": cublas,
    "ecc": ecc,
    "native-oom": native_oom,
    "watchdog": watchdog,
    "address-space": address_space,
    "outgrow": outgrows,
    "fill-disk": fills_disk,
    "fill-shm": fills_shared_memory,
    "busy-store": asks_busy_store,
    "bad-row": bad_row,
    "columns": columns_differ,
    "bad-shape": bad_shape,
    "undecodable": undecodable,
    "parquet": truncated_parquet,
    "gzip": truncated_gzip,
    "cast": drifted_table,
    "guard": loss_guard,
    "arguments": arguments,
    "handle": handles,
    "handle-and-wait": handles_then_waits,
    "wait": wait_for_the_end,
    "deaf": deaf,
    "oom-when-told": out_of_memory_when_told,
    "device-oom-when-told": device_oom_when_told,
    "crash-when-told": raises_and_the_other_crashes,
    "keep": keeps_a_folder,
    "null-pointer": native.null_pointer,
    "stack-overflow": native.native_stack_overflow,
    "bus-error": native.bus_error,
    "illegal-instruction": native.illegal_instruction,
    "abort": native.abort,
}


def main() -> None:
    """Do what the configuration says."""
    KINDS[KIND]()


if __name__ == "__main__":
    main()
