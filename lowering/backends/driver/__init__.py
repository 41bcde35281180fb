"""Our own machine code on a GPU, through the CUDA driver and nothing else: no numba, no compiler, no toolkit.

What a kernel object keeps::

    OPERANDS = Operands((Operand("D", "float16", 2, written=True), Operand("A", "float16", 2)))
    KERNEL = load(
        cached_cubin(ptx, device(ordinal).target).data, "entry", dynamic_shared, ordinal
    )  # for each GPU
    BLOCK = ParameterBlock(program, KERNEL.places)
    MAP = MapEncoder(program.maps[0]).bound(
        {"M": M, "K": K}
    )  # for each taken.forms, with the numbers and the grid

and what each launch does::

    taken = OPERANDS.take((d, a), stream)  # torch, cupy, numba, __cuda_array_interface__, DLPack
    d, a = taken.pointers
    arguments = BLOCK.frame().fill((a, d), (M, N, K), (MAP[a],))
    KERNEL.launch((ctas, 1, 1), threads, arguments, taken.stream)

A launch that comes again can be kept whole: ``KERNEL.prepare`` makes it ready, by what ``sight.sight`` sees of its
arrays it is found, and ``start`` starts it.

``bindings`` finds the driver, ``devices`` knows GPUs, ``arrays`` (with ``readers``, ``dlpack``, ``carriers``,
``overlap``), ``streams``, ``sight`` and ``operands`` take what the caller has, ``parameters`` and ``tensor_map`` pack
it, ``module`` and ``prepared`` load and launch, ``cache`` remembers machine code and measurements.  Importing this
loads no driver; only the calls that need one do.
"""

from ...errors import DriverError
from .arrays import DeviceArray, Form, as_device_array, check_overlap, common_device
from .bindings import driver_version
from .cache import Results, cached_cubin
from .devices import Device, clock_mhz, current_device, device
from .module import LoadedKernel, load
from .operands import Operand, Operands, Taken
from .parameters import Frame, ParameterBlock
from .prepared import Deferred, Prepared
from .streams import stream_of, wait_for
from .tensor_map import MapEncoder, encode

__all__ = [
    "Deferred",
    "Device",
    "DeviceArray",
    "DriverError",
    "Form",
    "Frame",
    "LoadedKernel",
    "MapEncoder",
    "Operand",
    "Operands",
    "ParameterBlock",
    "Prepared",
    "Results",
    "Taken",
    "as_device_array",
    "cached_cubin",
    "check_overlap",
    "clock_mhz",
    "common_device",
    "current_device",
    "device",
    "driver_version",
    "encode",
    "load",
    "stream_of",
    "wait_for",
]
