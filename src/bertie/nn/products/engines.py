"""Engines: libraries that multiply float32 matrices, all behind one signature.

Which is the fastest depends on the processor: `measuring.py` measures them and `choice.py` chooses. An engine is called
directly. Where torch reaches a library through a global setting only, the setting is changed around the call and then
restored.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

PACKED_FOR = 1024  # rows of a product that packed weights are laid out for; others work, too


class Engine(NamedTuple):
    about: str
    linear: Callable[[Tensor, Tensor, Tensor | None], Tensor]  # states [M, K], weight [N, K], bias [N] -> [M, N]
    # [M, K] x [K, N] -> [M, N], both may be transposed views. None where weights are kept in a layout of the engine's
    # own, which is for weights that stand still.
    multiply: Callable[[Tensor, Tensor], Tensor] | None = None
    exact: bool = True  # computes in float32; others round the factors to 16 bits


def _onednn_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return result


def _onednn(first: Tensor, second: Tensor) -> Tensor:
    return _onednn_linear(first, second.t(), None)


def _packed_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return _onednn_linear(states, _kept("packed", weight, _pack), bias)


def _pack(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR)
    return packed


def _short_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    with _short_products():
        return F.linear(states, weight, bias)


def _short(first: Tensor, second: Tensor) -> Tensor:
    with _short_products():
        return torch.mm(first, second)


def _stored_linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result = F.linear(states.to(torch.bfloat16), _kept("bfloat16", weight, Tensor.bfloat16)).float()
    return result if bias is None else result.add_(bias)


ENGINES = {
    "torch": Engine("torch's own choice, MKL on x86", F.linear, torch.mm),
    "onednn": Engine("oneDNN", _onednn_linear, _onednn),
    "onednn-packed": Engine("oneDNN, weights in a layout of its own", _packed_linear),
    "onednn-bfloat16": Engine("oneDNN, 16-bit products of float32 matrices", _short_linear, _short, exact=False),
    "bfloat16": Engine("weights stored in 16 bits", _stored_linear, exact=False),
}


# --- weights in another layout

_layouts: dict[str, WeakIdKeyDictionary] = {}  # of each: weight -> its checksum, and the weight in that layout


class StillWeights:
    """A block in which weights do not change, so that engines may keep them in layouts of their own.

    torch does not count every change of a tensor: a fused optimizer's is not seen. So a weight is compared with its
    checksum at its first use in a block, which costs as much as reading it once.
    """

    def __init__(self) -> None:
        self.checked: set[tuple[str, int]] = set()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Several threads may be in the block of one object."""
        token = _still.set(self)
        try:
            yield
        finally:
            _still.reset(token)


_still: ContextVar[StillWeights | None] = ContextVar("still", default=None)


def weights_are_still() -> bool:
    return _still.get() is not None


def _kept(layout: str, weight: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """The weight in another layout, kept as long as the weight lives and does not change."""
    block = _still.get()
    if block is None or not weight.is_contiguous():
        return convert(weight.detach())
    known, place = _layouts.setdefault(layout, WeakIdKeyDictionary()), (layout, id(weight))
    found = known.get(weight)
    if found is None or place not in block.checked:
        checksum = int(weight.detach().view(torch.int32).sum(dtype=torch.int64))
        if found is None or found[0] != checksum:
            with torch.inference_mode(False):
                found = known[weight] = checksum, convert(weight.detach())
        block.checked.add(place)
    kept: Tensor = found[1]
    return kept


# --- 16-bit products between float32 tensors, through torch's setting

_lock, _depth, _before = threading.Lock(), 0, "none"


@contextmanager
def _short_products() -> Iterator[None]:
    """Several threads may multiply at once: the first changes the setting, the last restores it."""
    global _depth, _before
    settings = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    with _lock:
        if _depth == 0:
            _before = settings.fp32_precision
            settings.fp32_precision = "bf16"
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                settings.fp32_precision = _before
