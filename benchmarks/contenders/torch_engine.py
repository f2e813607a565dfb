"""Which engine computes the matrix products of a contender: nothing enters, its name leaves. It imports no peer.

A peer's second row gets the engine that bertie chose. torch reaches oneDNN through a setting that is named after its
16-bit products; on a processor without these the products stay float32, so the name says which they were.
"""

import os
from typing import Any

import torch

VARIABLE = "BERTIE_BENCHMARK_PRODUCTS"  # "onednn" gives a peer the setting
ONEDNN = "onednn"
ACCURATE = 1e-5  # relative error; float32 has some 1e-7, 16 bits some 1e-3


def own_engine() -> str:
    """What bertie chose, in its own words."""
    from bertie.nn.products.choice import describe  # not above: a peer has no bertie

    return describe()


def is_onednn(engine: str) -> bool:
    """Whether oneDNN computes any of the products: torch does not use it for float32 by itself."""
    return ONEDNN in engine.lower()


def set_up() -> None:
    """Threads, and the engine of a peer's second row."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if os.environ.get(VARIABLE) == ONEDNN:
        matmul_settings().fp32_precision = "bf16"


def matmul_settings() -> Any:
    return torch.backends.mkldnn.matmul  # type: ignore[attr-defined]


def peer_engine() -> str:
    """After `set_up`."""
    if matmul_settings().fp32_precision != "bf16":
        return ""
    return f"oneDNN, {'float32' if is_accurate() else '16-bit'} products"


def is_accurate() -> bool:
    """Whether a product has the numbers of float32."""
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(256, 256, generator=generator) for _ in range(2))
    expected = first.double() @ second.double()
    return ((torch.mm(first, second).double() - expected).norm() / expected.norm()).item() <= ACCURATE
