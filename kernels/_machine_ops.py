"""Operations that numba cannot express, as LLVM instructions.

Imports numba, so ``_jit`` imports this module only to compile a kernel. ``_bytes`` has Python definitions of the same
operations; kernels import those.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "copy_bytes",
    "fold_multiply",
    "load_u16",
    "load_u32",
    "load_u64",
    "multiply_high",
    "prefetch",
    "store_u16",
    "store_u32",
    "store_u64",
]

_WORD = {16: types.uint16, 32: types.uint32, 64: types.uint64}


def _byte_pointer(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    data = builder.bitcast(data, cgutils.voidptr_t)
    return builder.gep(data, [position])


def _loader(bits: int) -> Any:
    def load(typingctx: Any, array: Any, position: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _byte_pointer(context, builder, signature.args[0], *args)
            word = builder.load(builder.bitcast(pointer, ir.IntType(bits).as_pointer()), align=1)
            return word

        return _WORD[bits](array, types.int64), codegen

    return intrinsic(load)


def _storer(bits: int) -> Any:
    def store(typingctx: Any, array: Any, position: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _byte_pointer(context, builder, signature.args[0], args[0], args[1])
            builder.store(args[2], builder.bitcast(pointer, ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, _WORD[bits]), codegen

    return intrinsic(store)


load_u16, load_u32, load_u64 = _loader(16), _loader(32), _loader(64)
store_u16, store_u32, store_u64 = _storer(16), _storer(32), _storer(64)


@intrinsic  # type: ignore[untyped-decorator]
def copy_bytes(typingctx: Any, target: Any, at: Any, source: Any, start: Any, length: Any) -> Any:
    """memcpy between two uint8 arrays."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = _byte_pointer(context, builder, signature.args[0], args[0], args[1])
        origin = _byte_pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, to, origin, args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def fold_multiply(typingctx: Any, left: Any, right: Any) -> Any:
    """High half xor low half of the 128-bit product of two uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        low = builder.trunc(product, ir.IntType(64))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        return builder.xor(low, high)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def multiply_high(typingctx: Any, left: Any, right: Any) -> Any:
    """High half of the 128-bit product of two non-negative int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]``; never faults."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen
