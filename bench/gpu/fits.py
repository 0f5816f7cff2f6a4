#!/usr/bin/env python3
"""Runs a command on an NVIDIA GPU that has only this many gigabytes of memory left:

    fits.py GIGABYTES COMMAND...

For example, whether 7.2B in NF4 with 16 sequences fits a card of 6 GB:
    fits.py 6 skein bench engine --device cuda --random 7.2b --dtype nf4 --state-dtype fp16 --batches 16

Takes the rest of the memory of device 0 before. What the driver needs for the command's own context counts, as it does
on such a card. Prints the least memory that was left, and has the exit status of the command.
"""
import ctypes
import subprocess
import sys
import threading

PIECE = 64 << 20


class Device:
    """Device 0 by the driver's interface."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.held = []
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.context = context

    def call(self, name: str, *arguments) -> None:
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with {status}")

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def leave(self, wanted: int) -> None:
        while (extra := self.free_bytes() - wanted) >= 2 << 20:
            size = max(2 << 20, min(extra // (2 << 20) * (2 << 20), 1 << 30 if extra > 2 << 30 else PIECE))
            at = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
            self.held.append(at)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 64
    device = Device()
    device.leave(int(float(sys.argv[1]) * 1e9))
    begin = least = device.free_bytes()
    command = subprocess.Popen(sys.argv[2:])
    done = threading.Event()
    threading.Thread(target=lambda: (command.wait(), done.set()), daemon=True).start()
    while not done.wait(0.02):
        least = min(least, device.free_bytes())
    print(f"fits: {begin / 1e9:.2f} GB were free, at least {least / 1e9:.2f} GB were left: "
          f"{(begin - least) / 1e9:.2f} GB used, exit status {command.returncode}")
    return command.returncode


if __name__ == "__main__":
    sys.exit(main())
