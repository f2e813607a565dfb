"""Chooses the engine of a product: by what was measured on this machine, for its role and the size of its weight.

An engine that computes in float32 is chosen wherever it is clearly faster than torch's own. Engines that round to 16
bits are chosen only inside `products_in("bfloat16")`. `BERTIE_ENGINE=NAME`, or `with use_engine(NAME)`, takes one
engine for all products.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bertie.errors import SpecError
from bertie.nn.products.engines import ENGINES, Engine

if TYPE_CHECKING:
    from bertie.nn.products.measuring import Reports

Precision = Literal["float32", "bfloat16"]  # of products; weights, states, sums and losses are float32
FASTER = 1.1  # an engine replaces torch's own if it is this many times as fast: less may be noise
LEAST_WORK = 2**25  # multiply-adds; a smaller product is left to torch: calls cost more than the choice gains
NEAR = 2.0  # the error of a float32 engine is at most so many times that of torch's own
SHORT = 3e-2  # the largest error of one with 16 bits: catches nonsense, not rounding


class Role(StrEnum):
    """What a product is for. `INFERENCE` is forward in a block of `StillWeights`."""

    INFERENCE = "inference"
    FORWARD = "forward"
    STATES_GRADIENT = "states gradient"
    WEIGHT_GRADIENT = "weight gradient"


class Class(StrEnum):
    """The size of a weight [N, K]."""

    NARROW = "narrow"
    MEDIUM = "medium"
    WIDE = "wide"
    VOCABULARY = "vocabulary"


# What stands for each class in a measurement: [N, K] of layers of width 256, 384 and 768, and a token table.
SHAPES = {
    Class.NARROW: (1024, 256),
    Class.MEDIUM: (1536, 384),
    Class.WIDE: (3072, 768),
    Class.VOCABULARY: (8192, 384),
}


def class_of(shape: Sequence[int]) -> Class:
    rows, columns = shape
    if rows >= 5000:
        return Class.VOCABULARY
    size = rows * columns
    return Class.NARROW if size <= 2**18 else Class.MEDIUM if size <= 2**20 else Class.WIDE


_forced: ContextVar[str | None] = ContextVar("forced", default=None)
_precision: ContextVar[Precision] = ContextVar("precision", default="float32")


def engine_for(role: Role, weight: Sequence[int], num_rows: int) -> Engine | None:
    """None where torch should do it its own way."""
    forced = _forced.get() or os.environ.get("BERTIE_ENGINE")
    if forced:
        engine = _named(forced)
        if engine.multiply is None and role is not Role.INFERENCE:
            return None
        return None if forced == "torch" else engine
    if num_rows * weight[0] * weight[1] < LEAST_WORK:
        return None
    name = chosen(_precision.get())[role, class_of(weight)]
    return None if name == "torch" else ENGINES[name]


def _named(name: str) -> Engine:
    if name not in ENGINES:
        raise SpecError(f"there is no engine {name!r}", hint=f"choose one of {', '.join(ENGINES)}")
    return ENGINES[name]


@contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Takes one engine for all products of the block."""
    _named(name)
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


@contextmanager
def products_in(precision: Precision) -> Iterator[None]:
    """Allows engines of this precision in the block. A thread that is started inside has to ask again."""
    token = _precision.set(precision)
    try:
        yield
    finally:
        _precision.reset(token)


Choice = dict[tuple[Role, Class], str]


@cache
def chosen(precision: Precision) -> Choice:
    """The engine of every role and class. Measures the machine, if that was never done."""
    from bertie.nn.products.measuring import measured_engines

    choice = choose(measured_engines(short=precision != "float32"), precision)
    return {place: name if name == "torch" or _holds(name, *place) else "torch" for place, name in choice.items()}


def choose(reports: "Reports", precision: Precision) -> Choice:
    """The fastest engine by these reports for every role and class."""
    choice = {}
    for role in Role:
        for kind in Class:
            found = {name: report.products.get(f"{role}, {kind}") for name, report in reports.items()}
            base, best = found["torch"], "torch"
            for name, one in found.items():
                engine, fastest = ENGINES[name], found[best]
                if base is None or one is None or fastest is None or name == "torch":
                    continue
                if role is not Role.INFERENCE and engine.multiply is None:
                    continue
                limit = NEAR * base.error if engine.exact else SHORT if precision != "float32" else 0.0
                if one.error <= limit and one.speed >= FASTER * base.speed and one.speed > fastest.speed:
                    best = name
            choice[role, kind] = best
    return choice


def _holds(name: str, role: Role, kind: Class) -> bool:
    """Whether the engine is as accurate in this process as the child that measured it said."""
    from bertie.nn.products.measuring import factors, relative_error

    first, second = factors(role, kind, 64)
    try:
        error = relative_error(name, role, first, second)
        limit = NEAR * relative_error("torch", role, first, second) if ENGINES[name].exact else SHORT
    except RuntimeError as problem:
        warnings.warn(f"the engine {name} fails ({problem}): torch computes the products", stacklevel=4)
        return False
    if not error <= limit:
        warnings.warn(f"the engine {name} is wrong by {error:.1g}: torch computes the products", stacklevel=4)
    return error <= limit


def describe(precision: Precision = "float32") -> str:
    """Names the engines in use: one name, or each with its roles."""
    if forced := _forced.get() or os.environ.get("BERTIE_ENGINE"):
        return forced
    choice = chosen(precision)
    names = sorted(set(choice.values()), key=list(ENGINES).index)
    if len(names) == 1:
        return names[0]
    places = {name: [f"{role} {kind}" for (role, kind), one in choice.items() if one == name] for name in names[1:]}
    return "; ".join([names[0], *(f"{name} for {', '.join(found)}" for name, found in places.items())])


def is_plain(*tensors: Tensor) -> bool:
    """Whether engines take them: float32 on the CPU, without autocast, which would make them another type."""
    numbers = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    return numbers and not torch.is_autocast_enabled("cpu")
