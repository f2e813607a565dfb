"""Engines: libraries that multiply float32 matrices, all behind one signature.

Which is the fastest depends on the processor: `measuring.py` measures them and `choice.py` chooses. An engine is called
directly. Where torch reaches a library through a global setting only, the setting is changed around the call and then
restored.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

PACKED_FOR = 1024  # rows of a product that packed weights are laid out for; others work, too


class Engine(NamedTuple):
    about: str
    linear: Callable[[Tensor, Tensor], Tensor]  # states [M, K], weight [N, K] -> [M, N]
    # [M, K] x [K, N] -> [M, N], both may be transposed views. None where weights are kept in a layout of the engine's
    # own, which is for weights that stand still.
    multiply: Callable[[Tensor, Tensor], Tensor] | None = None
    exact: bool = True  # computes in float32; others round the factors to 16 bits


def _torch(first: Tensor, second: Tensor) -> Tensor:
    return torch.mm(first, second)


def _torch_linear(states: Tensor, weight: Tensor) -> Tensor:
    return torch.mm(states, weight.t())


def _onednn(first: Tensor, second: Tensor) -> Tensor:
    return _onednn_linear(first, second.t())


def _onednn_linear(states: Tensor, weight: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, None, "none", [], "")
    return product


def _packed_linear(states: Tensor, weight: Tensor) -> Tensor:
    return _onednn_linear(states, _kept("packed", weight, _pack))


def _pack(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR)
    return packed


def _short(first: Tensor, second: Tensor) -> Tensor:
    with _short_products():
        return torch.mm(first, second)


def _short_linear(states: Tensor, weight: Tensor) -> Tensor:
    return _short(states, weight.t())


def _stored_linear(states: Tensor, weight: Tensor) -> Tensor:
    return F.linear(states.to(torch.bfloat16), _kept("bfloat16", weight, Tensor.bfloat16)).float()


ENGINES = {
    "torch": Engine("torch's own choice, MKL on x86", _torch_linear, _torch),
    "onednn": Engine("oneDNN", _onednn_linear, _onednn),
    "onednn-packed": Engine("oneDNN, weights in a layout of its own", _packed_linear),
    "onednn-bfloat16": Engine("oneDNN, float32 matrices in 16-bit products", _short_linear, _short, exact=False),
    "bfloat16": Engine("weights stored in 16 bits", _stored_linear, exact=False),
}


# --- weights in another layout

_layouts: dict[str, WeakIdKeyDictionary] = {}


def _kept(layout: str, weight: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """The weight in another layout, kept as long as the weight lives and does not change."""
    if weight.is_inference():  # has no version by which a change could be seen
        return convert(weight)
    known, stamp = _layouts.setdefault(layout, WeakIdKeyDictionary()), (weight._version, weight.data_ptr())
    found = known.get(weight)
    if found is None or found[0] != stamp:
        with torch.inference_mode(False):
            found = known[weight] = stamp, convert(weight.detach())
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
