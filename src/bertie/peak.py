"""The speed of this machine's matrix products, of which a run reaches a share.

Other programs can only make a measurement slower, so the fastest counts: over several shapes, all engines that torch
has, and all measurements that were ever made here with this torch and this many threads. A run that is faster still
raises the peak for its process: what is counted for a run is an estimate, and must not be kept.
"""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from bertie.disk import is_private, write_file
from bertie.machine import cache_file, cache_key, read_cache

# Rows, inputs and outputs: layers of several widths, and as many tokens as micro-batches have.
SHAPES = ((512, 768, 3072), (512, 3072, 768), (1024, 256, 1024), (1024, 512, 2048), (2048, 384, 1536))
SECONDS = 0.04  # for each product
ACCURATE = 1e-5  # relative error; float32 has some 1e-7, 16 bits some 1e-3
FASTEST = 1e16  # FLOP/s; more is no processor but a damaged file
MOST_KEPT = 8  # thread counts and torch versions

_raised: dict[tuple[str, str], float] = {}  # by machine and precision, in this process

Product = Callable[[], Tensor]


def peak_flops(precision: str = "float32", refresh: bool = False) -> float | None:
    """FLOP/s of the fastest matrix product. Float32 is measured at the first call on a machine and with `refresh`,
    which takes a second. Other precisions may end the process: they are known only where `bertie machine` measured
    them."""
    key = cache_key()
    probed = read_cache(cache_file()).get(key, {}).get(precision)
    found = [_raised.get((key, precision), 0.0)]
    if probed is not None and probed.speed is not None:
        found.append(probed.speed * 1e12)
    if precision == "float32":
        kept = read_kept()
        measured = kept.get(key, 0.0)
        if refresh or not measured:
            measured = max(measured, measure_products())
            write_kept({**{name: flops for name, flops in kept.items() if name != key}, key: measured})
            raise_peak(measured)  # where it cannot be kept
        found.append(measured)
    return max(found) or None


def raise_peak(flops: float, precision: str = "float32") -> None:
    """Something in this process was as fast as that, so the peak is not below it."""
    place = (cache_key(), precision)
    _raised[place] = max(flops, _raised.get(place, 0.0))


# --- measuring


@torch.inference_mode()
def measure_products() -> float:
    """FLOP/s of the fastest of all shapes and engines."""
    generator = torch.Generator().manual_seed(0)
    best = 0.0
    for rows, inputs, outputs in SHAPES:
        states = torch.randn(rows, inputs, generator=generator)
        weight = torch.randn(outputs, inputs, generator=generator) / math.sqrt(inputs)
        for product in products(states, weight):
            best = max(best, 2 * rows * inputs * outputs / fastest_seconds(product))
    return best


def products(states: Tensor, weight: Tensor) -> Iterator[Product]:
    """states [M, K] x weight [N, K], by torch's own engine, then by those of the others that compute in float32."""
    yield lambda: torch.nn.functional.linear(states, weight)
    if not torch.backends.mkldnn.is_available():
        return
    expected = states[:8].double() @ weight.double().T
    for pack in (False, True):
        with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError):  # not in this build of torch
            laid_out = torch.ops.mkldnn._reorder_linear_weight(weight, len(states)) if pack else weight
            product = _onednn_product(states, laid_out)
            if ((product()[:8].double() - expected).norm() / expected.norm()).item() <= ACCURATE:
                yield product


def _onednn_product(states: Tensor, weight: Tensor) -> Product:
    return lambda: torch.ops.mkldnn._linear_pointwise(states, weight, None, "none", [], "")


def fastest_seconds(product: Product) -> float:
    product()
    best, spent = math.inf, 0.0
    while spent < SECONDS:
        start = time.perf_counter()
        product()
        taken = time.perf_counter() - start
        best, spent = min(best, taken), spent + taken
    return best


# --- what is kept


def kept_file() -> Path:
    return cache_file().with_name("peak.json")


def read_kept() -> dict[str, float]:
    """FLOP/s by machine; nothing when the file is missing, unreadable, broken or open to other users."""
    file = kept_file()
    try:
        if not file.is_file() or not is_private(file):
            return {}
        entries = json.loads(file.read_text(encoding="utf-8"))
        kept = {str(key): float(flops) for key, flops in entries.items()}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}
    return {key: flops for key, flops in kept.items() if 0 < flops < FASTEST}


def write_kept(entries: Mapping[str, float]) -> None:
    """Whole or not at all. A folder that cannot be written costs a new measurement next time, no more."""
    file = kept_file()
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(file, json.dumps(dict(list(entries.items())[-MOST_KEPT:])).encode())
        file.chmod(0o600)  # one that other users may write is not read
