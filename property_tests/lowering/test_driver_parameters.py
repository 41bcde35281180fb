"""Parameters where the kernel finds them, and tensor maps as the driver is asked for them."""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowering.backends import cubin_info
from lowering.backends.assemble import assemble
from lowering.backends.driver import MapEncoder, ParameterBlock, encode
from lowering.errors import DriverError
from lowering.program import Buffer, Parameter, Program, TensorMap
from lowering.target import target
from property_tests.lowering.driver_fake import CUresult, Driver, installed
from tilelayout import LayoutError
from tilelayout.expr import Var

A, D = (Buffer(role, role, "float16", (0,)) for role in "AD")
COLUMNS, ROWS, PITCH = Var("columns", 1, 1 << 40), Var("rows", 1, 1 << 40), Var("pitch", 0, 1 << 50)
MAPS = [TensorMap(f"map{i}", A, (COLUMNS, ROWS), (PITCH,), (64, 16), 128) for i in range(2)]
BOUNDS = {"s32": (-(1 << 31), (1 << 31) - 1), "s64": (-(1 << 63), (1 << 63) - 1)}
CODES = {"s32": "i", "s64": "q", "f32": "f", "f64": "d"}


def program(kinds: list[str], maps: int = 0, buffers: tuple[Buffer, ...] = (A, D)) -> Program:
    numbers = tuple(Parameter(f"p{i}", kind, *BOUNDS.get(kind, ())) for i, kind in enumerate(kinds))  # type: ignore[arg-type]
    return Program("kernel", 4, (), (), (), buffers=buffers, parameters=numbers, maps=tuple(MAPS[:maps]))


def values(kind: str) -> st.SearchStrategy[Any]:
    return st.integers(*BOUNDS[kind]) if kind in BOUNDS else st.floats(width=int(kind[1:]), allow_nan=False)


@st.composite
def launches(draw: st.DrawFn) -> tuple[Program, list[int], tuple[Any, ...], list[bytes]]:
    """A program, and what it is launched with."""
    kinds = draw(st.lists(st.sampled_from(list(CODES)), max_size=6))
    of = program(kinds, draw(st.integers(0, 2)))
    pointers = draw(st.lists(st.integers(0, (1 << 64) - 1), min_size=2, max_size=2))
    numbers = tuple(draw(values(kind)) for kind in kinds)
    return of, pointers, numbers, [draw(st.binary(min_size=128, max_size=128)) for _ in of.maps]


@given(launches())
def test_each_parameter_is_where_the_driver_is_told(
    launch: tuple[Program, list[int], tuple[Any, ...], list[bytes]],
) -> None:
    of, pointers, numbers, maps = launch
    block = ParameterBlock(of)
    frame = block.frame()
    arguments = frame.fill(pointers, numbers, maps)
    assert arguments == frame.arguments
    codes = ["Q"] * 2 + [CODES[p.kind] for p in of.parameters] + ["128s"] * len(maps)
    addresses = (ctypes.c_size_t * len(codes)).from_address(arguments)
    for address, code, value in zip(addresses, codes, [*pointers, *numbers, *maps], strict=True):
        assert struct.unpack(code, ctypes.string_at(address, struct.calcsize(code))) == (value,)
        assert address % (64 if code == "128s" else struct.calcsize(code)) == 0
    for (offset, size), address in zip(block.places, addresses, strict=True):
        assert frame.packed()[offset : offset + size] == ctypes.string_at(address, size)


def test_natural_places_are_those_of_c() -> None:
    block = ParameterBlock(program(["s32", "f64", "f32", "s64"], 2))
    assert [a for a, _ in block.places] == [0, 8, 16, 24, 32, 40, 64, 192]
    assert block.names == ("A", "D", "p0", "p1", "p2", "p3", "map0", "map1")
    assert block.size == 320


@pytest.mark.skipif(
    sys.platform not in ("linux", "win32"), reason="NVIDIA's libraries are not published for this system"
)
@pytest.mark.parametrize("name", ["sm_80", "sm_90a", "sm_120"])
def test_assemblers_place_maps_otherwise_than_c_does(name: str) -> None:
    """Why the driver is told where each parameter is, and not given all in one piece."""
    of, here = program(["s32"], 2), target(name)
    text = ", ".join([".param .u64 A", ".param .u64 D", ".param .s32 p0",
                      *[f".param .align 64 .b8 map{i}[128]" for i in range(2)]])  # fmt: skip
    version = ".".join(map(str, here.ptx))
    ptx = f".version {version}\n.target {name}\n.address_size 64\n.visible .entry kernel({text}) {{ ret; }}\n"
    places = parameter_places(assemble(ptx, here).data, "kernel")
    block = ParameterBlock(of, places)
    assert [size for _, size in places] == [8, 8, 4, 128, 128]
    assert places[:3] == block.places[:3] == ((0, 8), (8, 8), (16, 4))
    assert (places == block.places) == (here.sm >= 100)


def parameter_places(cubin: bytes, entry: str) -> tuple[tuple[int, int], ...]:
    """Offset and size of each parameter, from EIATTR_KPARAM_INFO (0x17) of the cubin."""
    found: dict[int, tuple[int, int]] = {}
    data, at = cubin_info._sections(cubin)[f".nv.info.{entry}"], 0
    while at < len(data):
        form, kind, number = struct.unpack_from("<BBH", data, at)
        if kind == 0x17:
            _, ordinal, offset, flags = struct.unpack_from("<IHHI", data, at + 4)
            found[ordinal] = offset, flags >> 18
        at += 4 + (number if form == 4 else 0)
    return tuple(found[i] for i in sorted(found))


@pytest.mark.parametrize(
    "places", [((0, 8), (8, 8)), ((0, 8), (8, 8), (16, 8)), ((0, 8), (8, 8), (16, 4), (20, 4))]
)
def test_places_of_another_kernel_are_refused(places: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(LayoutError, match=r"launch of kernel.*'p0': 4"):
        ParameterBlock(program(["s32"]), places)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (((1,), (2, 3.0), ()), "1 addresses and 0 tensor maps for 2 and 0"),
        (((1, 2), (2,), ()), "1 numbers for parameters.*p0.*p1"),
        (((1, 2), (2, 3.0, 4), ()), "3 numbers for parameters"),
        (((1, 2), (1 << 31, 3.0), ()), "p0 = 2147483648 is not from -2147483648 to 2147483647"),
        (((1, 2), (2.5, 3.0), ()), "do not fit"),
        (((1, 2), (2, "x"), ()), "do not fit"),
        (((-1, 2), (2, 3.0), ()), "do not fit"),
        (((1, 2), (2, 1e300), ()), "do not fit"),
        (((1, 2), (2, 3.0), (bytes(128),)), "1 tensor maps for 2 and 0"),
        (((1, 2), (2, 3.0), (bytes(127),)), "a tensor map of 127 bytes"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_the_frame_usable(given: Any, words: str) -> None:
    frame = ParameterBlock(program(["s32", "f32"])).frame()
    frame.fill((1, 2), (2, 3.0))
    before = frame.packed()
    for _ in range(2):
        with pytest.raises(LayoutError, match=f"launch of kernel.*{words}"):
            frame.fill(*given)
    frame.fill((1, 2), (2, 3.0))
    assert frame.packed() == before


def test_bounds_are_kept_at_each_launch() -> None:
    of = Program("kernel", 1, (), (), (), parameters=(Parameter("n", "s32", 1, 10),))
    frame = ParameterBlock(of).frame()
    frame.fill((), (10,))
    numbers = [5]
    frame.fill((), numbers)
    numbers[0] = 11
    for beyond in (numbers, (11,), (0,)):
        with pytest.raises(LayoutError, match=r"n = .* is not from 1 to 10"):
            frame.fill((), beyond)


def test_zeros_keep_their_sign() -> None:
    frame = ParameterBlock(program(["f32", "f64"])).frame()
    for alpha, beta in ((0.0, -0.0), (-0.0, 0.0), (0, 0.0), (-0.0, -0.0), (1.0, -0.0), (1.0, 0.0)):
        frame.fill((1, 2), (alpha, beta))
        assert frame.packed()[16:] == struct.pack("<f4xd", alpha, beta)


def test_each_thread_has_memory_of_its_own() -> None:
    block = ParameterBlock(program([]))
    mine, found = block.frame(), []
    assert block.frame() is mine
    thread = threading.Thread(target=lambda: found.append(block.frame()))
    thread.start()
    thread.join()
    assert found[0].arguments != mine.arguments


# --- tensor maps ----------------------------------------------------------------------------------------------------


@pytest.fixture
def driver() -> Iterator[Driver]:
    with installed(Driver()) as found:
        yield found


VALUES = {"columns": 100, "rows": 7, "pitch": 104, "another": 5}


def test_a_map_is_encoded_for_the_values_of_the_launch(driver: Driver) -> None:
    first, *rest = (encode(MAPS[0], 4096, VALUES) for _ in range(3))
    assert len(first) == 128
    assert rest == [first, first]
    (arguments,) = driver.of("cuTensorMapEncodeTiled")
    assert arguments == (
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 2, 4096, [100, 7], [208], [64, 16], [1, 1],
        "CU_TENSOR_MAP_INTERLEAVE_NONE", "CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    )  # fmt: skip
    assert encode(MAPS[0], 8192, VALUES) != first
    assert encode(MAPS[0], 4096, {**VALUES, "rows": 8}) != first
    assert encode(MAPS[0], 4096, {**VALUES, "another": 6}) == first
    assert len(driver.of("cuTensorMapEncodeTiled")) == 3


@pytest.mark.parametrize(
    ("pointer", "pitch", "bytes_at_once"),
    [(4096, 128, 256), (4096 + 128, 128, 128), (4096, 64, 128), (4096, 104, 128), (4096 + 16, 128, 128)],
)
def test_the_cache_fetches_no_more_than_rows_are_aligned_to(
    driver: Driver, pointer: int, pitch: int, bytes_at_once: int
) -> None:
    encode(MAPS[0], pointer, {**VALUES, "pitch": pitch})
    (arguments,) = driver.of("cuTensorMapEncodeTiled")
    assert f"CU_TENSOR_MAP_L2_PROMOTION_L2_{bytes_at_once}B" in arguments


def test_bound_maps_are_found_by_address(driver: Driver) -> None:
    encoder = MapEncoder(MAPS[0])
    bound = encoder.bound(VALUES)
    assert bound[4096] == bound[4096] == encoder(4096, VALUES)
    for i in range(1, 3000):
        assert bound[16 * i] == encoder(16 * i, VALUES) or i > 1000  # both forget, and remember again
    assert len(bound) <= 1024


@pytest.mark.parametrize(
    ("dtype", "container", "kind", "width"),
    [
        ("float64", 0, "FLOAT64", 8), ("float32", 0, "FLOAT32", 4), ("tfloat32", 0, "FLOAT32", 4),
        ("bfloat16", 0, "BFLOAT16", 2), ("int32", 0, "INT32", 4), ("uint32", 0, "UINT32", 4),
        ("int16", 0, "UINT16", 2), ("int8", 0, "UINT8", 1), ("float8_e4m3fn", 0, "UINT8", 1),
        ("float6_e2m3fn", 8, "UINT8", 1), ("float4_e2m1fn", 8, "UINT8", 1),
    ],
)  # fmt: skip
def test_types_are_copied_as_they_are(
    driver: Driver, dtype: str, container: int, kind: str, width: int
) -> None:
    tensor = TensorMap("m", Buffer("A", "A", dtype, (0,), container), (COLUMNS, ROWS), (PITCH,), (32, 4))
    encode(tensor, 4096, {**VALUES, "pitch": 128})
    ((found, _, _, _, strides, *_),) = driver.of("cuTensorMapEncodeTiled")
    assert (found, strides) == (f"CU_TENSOR_MAP_DATA_TYPE_{kind}", [128 * width])


def test_packed_elements_have_no_map() -> None:
    tensor = TensorMap("m", Buffer("A", "A", "int4", (64,)), (64,), (), (64,))
    with pytest.raises(LayoutError, match=r"tensor map m: elements of 4 bits.*remedy"):
        MapEncoder(tensor)


@pytest.mark.parametrize(
    ("pointer", "change", "words"),
    [
        (4104, {}, "A begins at address 0x1008, no multiple of 16 bytes"),
        (4096, {"pitch": 101}, "stride of 202 bytes in dimension 1 of A, no multiple of 16"),
        (4096, {"pitch": 1 << 39}, "stride of 1099511627776 bytes"),
        (4096, {"pitch": -8}, "stride of -16 bytes"),
        (4096, {"rows": 0}, "0 elements in dimension 1"),
        (4096, {"columns": (1 << 32) + 1}, "4294967297 elements in dimension 0"),
    ],
)
def test_rules_of_the_copy_engine_are_named(
    driver: Driver, pointer: int, change: dict[str, int], words: str
) -> None:
    with pytest.raises(LayoutError, match=f"tensor map map0: .*{words}"):
        encode(MAPS[0], pointer, {**VALUES, **change})
    assert not driver.of("cuTensorMapEncodeTiled")


def test_a_promise_of_whole_units_is_kept_at_the_launch(driver: Driver) -> None:
    """Storing rows of 200 bytes would overwrite 8 behind each; loading them does not."""
    promised = replace(MAPS[0], whole_units=True)
    with pytest.raises(
        LayoutError, match="map0: rows of 200 bytes of A, which are promised to be whole units of 16"
    ):
        encode(promised, 4096, VALUES)
    assert not driver.of("cuTensorMapEncodeTiled")
    encode(promised, 4096, {**VALUES, "columns": 96})
    encode(MAPS[0], 4096, {**VALUES, "columns": 100})
    assert [arguments[3] for arguments in driver.of("cuTensorMapEncodeTiled")] == [[96, 7], [100, 7]]


def test_the_stride_of_one_row_is_of_no_account(driver: Driver) -> None:
    encode(MAPS[0], 4096, {**VALUES, "rows": 1, "pitch": 3})
    ((_, _, _, sizes, strides, *_),) = driver.of("cuTensorMapEncodeTiled")
    assert sizes == [100, 1]
    assert strides[0] % 16 == 0
    assert strides[0] >= 200


def test_a_thread_without_a_context_is_given_one_meanwhile(driver: Driver) -> None:
    """The driver's encoder asks for one."""
    driver.current = None
    seen = []
    answer = driver.answer
    driver.answer = lambda name, *a: seen.append((name, driver.current)) or answer(name, *a)  # type: ignore[method-assign]
    encode(MAPS[0], 4096, VALUES)
    assert ("cuTensorMapEncodeTiled", 0) in seen
    assert driver.current is None


def test_a_value_that_is_missing_is_named(driver: Driver) -> None:
    with pytest.raises(LayoutError, match=r"no value for pitch.*columns, pitch, rows"):
        encode(MAPS[0], 4096, {"rows": 1, "columns": 1})


def test_what_the_driver_refuses_says_all_that_it_was_given(driver: Driver) -> None:
    driver.fails["cuTensorMapEncodeTiled"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(
        DriverError, match=r"(?s)map0.*INVALID_VALUE.*FLOAT16 at 0x1000, sizes \(100, 7\).*9\.0"
    ):
        encode(MAPS[0], 4096, VALUES)
    driver.lacks.add("cuTensorMapEncodeTiled")
    with pytest.raises(DriverError, match="too old"):
        encode(MAPS[0], 4096, VALUES)
