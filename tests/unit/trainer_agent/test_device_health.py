"""Devices as NVIDIA's management library tells of them, where there is one."""

from __future__ import annotations

from trackway_trainer_agent.worker.device_health import DeviceHealth


class Library:
    """What is used of pynvml."""

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    class NVMLError(Exception):
        """As pynvml names it."""

    def __init__(self, errors: dict[str, int]) -> None:
        self.errors = errors

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return str(index)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid

    def nvmlDeviceGetTotalEccErrors(self, handle: str, kind: int, since: int) -> int:
        assert (kind, since) == (1, 0)
        if handle not in self.errors:
            raise self.NVMLError("GPU is lost")
        return self.errors[handle]


def problems(health: DeviceHealth) -> dict[str, str]:
    return {state.device: state.problem for state in health.states()}


def test_only_what_went_wrong_since_the_start_is_a_problem():
    library = Library({"0": 3, "GPU-aa": 0})
    health = DeviceHealth(("0", "GPU-aa"), library)
    assert problems(health) == {"0": "", "GPU-aa": ""}
    library.errors = {"0": 5}
    assert problems(health) == {
        "0": "2 uncorrectable ECC errors since the start",
        "GPU-aa": "the driver does not answer for it any more",
    }


def test_a_device_that_never_told_is_no_problem():
    health = DeviceHealth(("1",), Library({}))
    assert problems(health) == {"1": ""}


def test_without_the_library_there_is_nothing_to_tell():
    assert problems(DeviceHealth(())) == {}
