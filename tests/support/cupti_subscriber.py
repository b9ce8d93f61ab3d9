"""A tool that subscribes to CUPTI by version 2, for programs that are recorded: counts the kernels it hears of."""

from __future__ import annotations

import ctypes

_KERNEL, _KERNEL_BYTES = 10, {130301: 232, 130401: 248, 130500: 248}
_BUFFER_BYTES = 1 << 16


class _Params(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("old_name", ctypes.c_char_p),
        ("old_name_size", ctypes.c_size_t),
        ("allow_multiple", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 7),
    )


_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
_Requested = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


class Subscriber:
    """One subscriber. `result` is what CUPTI said when it subscribed."""

    def __init__(self, name: str, allow_multiple: bool = True) -> None:
        self.kernels = 0
        self._cupti = ctypes.CDLL("libcupti.so.13")
        self._handle = ctypes.c_void_p()
        self._callbacks = (_Callback(lambda *_: None), _Requested(self._request), _Completed(self._complete))
        self._buffers: dict[int, ctypes.Array[ctypes.c_char]] = {}
        version = ctypes.c_uint32()
        self._cupti.cuptiGetVersion(ctypes.byref(version))
        self._stride = _KERNEL_BYTES[version.value]
        params = _Params(_Params.padding.offset, name.encode(), None, 0, allow_multiple)
        self.result = self._cupti.cuptiSubscribe_v2(
            ctypes.byref(self._handle), self._callbacks[0], None, ctypes.byref(params)
        )

    def collect(self) -> None:
        """Have a record of each kernel from now on."""
        assert self._cupti.cuptiActivityRegisterCallbacks_v2(self._handle, *self._callbacks[1:]) == 0
        assert self._cupti.cuptiActivityEnable_v2(self._handle, _KERNEL, None) == 0

    def flush(self) -> None:
        """Flush the buffers of all subscribers: CUPTI knows no other."""
        assert self._cupti.cuptiActivityFlushAll(0) == 0

    def _request(self, buffer, size, max_records, _info) -> None:  # type: ignore[no-untyped-def]
        memory = ctypes.create_string_buffer(_BUFFER_BYTES)
        self._buffers[ctypes.addressof(memory)] = memory
        buffer[0], size[0], max_records[0] = ctypes.addressof(memory), _BUFFER_BYTES, 0

    def _complete(self, buffer: int, _size: int, valid: int, _info: int) -> None:
        memory = self._buffers.pop(buffer).raw[:valid]
        for at in range(0, valid, self._stride):
            assert int.from_bytes(memory[at : at + 4], "little") == _KERNEL
            self.kernels += 1
