"""Whether NVML answers here, which telemetry asks; for a process of its own, since a driver may hang."""

from __future__ import annotations

import ctypes

_LIBRARY = "libnvidia-ml.so.1"
_VERSION_BYTES = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE


def nvml_state() -> dict[str, str]:
    """`driver`: the version that NVML names; or `reason`: why it does not answer."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        initialize, driver_version = library.nvmlInit_v2, library.nvmlSystemGetDriverVersion
    except (OSError, AttributeError) as error:
        return {"reason": f"{_LIBRARY} was not found, or is too old: {error}"}
    if result := initialize():
        return {"reason": f"nvmlInit_v2 failed with NVML error {result}"}
    version = ctypes.create_string_buffer(_VERSION_BYTES)
    if result := driver_version(version, ctypes.c_uint(_VERSION_BYTES)):
        return {"reason": f"nvmlSystemGetDriverVersion failed with NVML error {result}"}
    return {"driver": version.value.decode(errors="replace")}
