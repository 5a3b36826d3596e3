"""What NVIDIA's management library says is wrong with devices, where it is installed; never needed."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from typing import Any

from trackway_trainer_agent.worker.records import DeviceState

logger = logging.getLogger(__name__)


class DeviceHealth:
    """Of the devices of one rank; what was wrong before the trainer began is not its story."""

    def __init__(self, devices: Sequence[str], library: Any = None) -> None:
        self._library = library if library is not None else _load()
        self._devices = tuple(devices) if self._library is not None else ()
        self._before = {device: self._errors(device) for device in self._devices}

    def states(self) -> tuple[DeviceState, ...]:
        """Each device, with what has gone wrong since."""
        return tuple(DeviceState(device=device, problem=self._problem(device)) for device in self._devices)

    def _problem(self, device: str) -> str:
        before, now = self._before[device], self._errors(device)
        if now is None:
            return "" if before is None else "the driver does not answer for it any more"
        new = now - (before or 0)
        return f"{new} uncorrectable ECC errors since the start" if new > 0 else ""

    def _errors(self, device: str) -> int | None:
        """Uncorrectable ECC errors since the driver was loaded; ``None`` where the library does not say."""
        library = self._library
        try:
            found = (
                library.nvmlDeviceGetHandleByIndex(int(device))
                if device.isdigit()
                else library.nvmlDeviceGetHandleByUUID(device)
            )
            return int(
                library.nvmlDeviceGetTotalEccErrors(
                    found, library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
                )
            )
        except library.NVMLError:
            return None


def _load() -> Any:
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        logger.info("no device health", extra={"why": str(error)})
        return None
    return library
