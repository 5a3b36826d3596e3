"""The signature table: what each row is for, and what looks like it and is not."""

from __future__ import annotations

import time

import pytest
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.signatures import TABLE, Part, of_error, of_line

ERRORS = {
    "torch device memory": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "cublas allocation": "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "runtime device memory": "torch.AcceleratorError: CUDA error: out of memory",
    "torch out of memory": "torch.OutOfMemoryError: no room on the device",
    "python memory": "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB",
    "refused allocation": "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate",
    "cannot allocate": "OSError: [Errno 12] Cannot allocate memory",
    "no room": "OSError: [Errno 122] Disk quota exceeded",
    "no shared memory": "RuntimeError: unable to write to file </torch_1_2> in shm",
    "store away": "Unavailable: the store gave EIO",
    "device i/o": "OSError: [Errno 116] Stale file handle: '/mnt/data/a'",
    "object store": "botocore.exceptions.ClientError: An error occurred (503) ... Service Unavailable",
    "device hardware": "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "device gone": "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "kernel crash": "torch.AcceleratorError: CUDA error: unspecified launch failure",
    "anomaly mode": "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    "floating point": "FloatingPointError: overflow encountered in multiply",
    "loss guard": "ValueError: training stopped: loss became NaN at step 12",
    "arrow schema": "ValueError: Target schema's field names are not matching the table's field names",
    "text encoding": "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
    "image decoder": "PIL.UnidentifiedImageError: cannot identify image file",
    "compressed data": "zlib.error: Error -3 while decompressing data: invalid code lengths set",
    "state dict": "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for w",
    "optimizer state": "ValueError: loaded state dict has a different number of parameter groups",
    "rendezvous port": "torch.distributed.DistNetworkError: The server socket has failed to listen (EADDRINUSE)",
    "elastic rendezvous": "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError: ",
    "clients missing": "torch.distributed.DistStoreError: waiting for clients. 1/2 clients joined.",
    "store not there": "torch.distributed.DistNetworkError: The client socket has timed out after 2000ms",
    "key never set": "torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /worker/1",
    "collective watchdog": "RuntimeError: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    "collective wait": "RuntimeError: [gloo] Timed out waiting 2000ms for recv operation to complete",
    "loader worker": "RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.",
    "torch distributed": "torch.distributed.DistBackendError: NCCL error",
    "peer gone": "ConnectionResetError: [Errno 104] Connection reset by peer",
    "transport, then peer": "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer",
    "peer, then transport": "RuntimeError: Connection refused by the ProcessGroup",
}
LINES = {
    "bad_alloc": "terminate called after throwing an instance of 'std::bad_alloc'",
    "no such script": "python: can't open file '/code/train.py': [Errno 2] No such file or directory",
    "arguments": "train.py: error: unrecognized arguments: --stepz 3",
}


@pytest.mark.parametrize("name", [row.name for row in TABLE])
def test_every_row_has_an_example_that_it_is_the_first_to_match(name: str):
    found = of_error(ERRORS[name]) if name in ERRORS else of_line(LINES[name])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: 503 samples were expected",
        "ValueError: the loss weight is negative",
        "KeyError: 'nan'",
        "ValueError: schema version 3 is not known",
        "RuntimeError: shapes (28, 12) and (122, 5) do not match",
        "RuntimeError: infinite loop detected in the graph",
        "AssertionError: ",
        "ImportError: cannot import name 'memory' from 'cuda'",
    ],
)
def test_what_only_looks_like_a_signature_is_none(text: str):
    assert of_error(text) is None


XID_LINES = {
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.": Reason.DEVICE_HARDWARE,
    "NVRM: Xid (PCI:0000:3b:00): 48, pid=13, DBE (double bit error)": Reason.DEVICE_HARDWARE,
    "NVRM: Xid (PCI:0000:48:00): 13, pid=4711, Graphics SM Warp Exception": None,
    "NVRM: Xid (PCI:0000:3b:00): 31, pid=79, MMU Fault": None,
}


@pytest.mark.parametrize("line", XID_LINES)
def test_an_xid_is_its_number_not_a_bus_or_a_process(line: str):
    found = of_line(line)
    assert (found.reason if found is not None else None) is XID_LINES[line]


def test_a_crash_of_the_users_kernel_is_no_fault_of_the_device():
    crash = of_error("torch.AcceleratorError: CUDA error: unspecified launch failure")
    busy = of_error("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable")
    assert crash is not None
    assert busy is not None
    assert (crash.reason, busy.reason) == (Reason.PROCESS_CRASH, Reason.DEVICE_HARDWARE)


def test_advice_about_memory_is_not_read_from_lines_of_other_kinds():
    assert of_line("hint: a smaller batch avoids running out of memory") is None


def test_what_follows_from_others_is_marked_so():
    parts = {row.name: row.part for row in TABLE}
    assert parts["clients missing"] is Part.CONSEQUENCE
    assert parts["rendezvous port"] is Part.CAUSE
    assert {row.reason for row in TABLE if row.part is Part.CONSEQUENCE} == {
        Reason.RENDEZVOUS_FAILED,
        Reason.COLLECTIVE_TIMEOUT,
        Reason.UNKNOWN_KILL,
        Reason.NETWORK_FABRIC,
    }


@pytest.mark.parametrize("unit", ["loss ", "NCCL peer ", "CUDA ", "wait operation ", "listen 503 "])
def test_a_long_text_takes_no_long_time(unit: str):
    text = unit * (10**6 // len(unit))
    begun_s = time.process_time()
    of_error(text)
    of_line(text)
    assert time.process_time() - begun_s < 1.0
