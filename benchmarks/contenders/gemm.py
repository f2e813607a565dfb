"""The float32 peak: a model's shapes enter with a request, the fastest matrix product among them leaves.

Every engine that torch has is tried, MKL (or whatever its BLAS is) and oneDNN, each with the weight as it is and with
one packed beforehand. An engine whose numbers are not those of float32 does not count.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.contenders.protocol import Answer, answer_requests
from benchmarks.contenders.torch_engine import ACCURATE, set_up

NUM_TOKENS = (512, 1024, 2048, 4096)
SECONDS = 0.1  # for each product
OWN = "MKL" if torch.backends.mkl.is_available() else "BLAS"  # what torch uses by itself

Product = Callable[[], Tensor]


def products(shapes: Sequence[Sequence[int]]) -> Iterator[tuple[str, str, int, Product]]:
    """Shape, engine, operations and the product itself."""
    for num_tokens in NUM_TOKENS:
        for inputs, outputs in shapes:
            states, weight, bias = torch.randn(num_tokens, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
            shape, operations = f"[{num_tokens}, {inputs}] x [{inputs}, {outputs}]", 2 * num_tokens * inputs * outputs
            for engine, run in engines(states, weight, bias).items():
                yield shape, engine, operations, run


def engines(states: Tensor, weight: Tensor, bias: Tensor) -> dict[str, Product]:
    """Those that are here and give the numbers of float32."""
    ways: dict[str, Callable[[Tensor, Tensor, Tensor], Product]] = {OWN: own_product}
    if torch.backends.mkl.is_available():
        ways["MKL packed"] = packed_mkl_product
    if torch.backends.mkldnn.is_available():
        ways |= {"oneDNN": onednn_product, "oneDNN packed": packed_onednn_product}
    expected = states[:8].double() @ weight.double().T + bias.double()
    found = {}
    for name, make in ways.items():
        try:
            run = make(states, weight, bias)
            error = ((run()[:8].double() - expected).norm() / expected.norm()).item()
        except (AttributeError, NotImplementedError, RuntimeError):  # this build of torch does not have it
            continue
        if error <= ACCURATE:
            found[name] = run
    return found


def own_product(states: Tensor, weight: Tensor, bias: Tensor) -> Product:
    return partial(F.linear, states, weight, bias)


def packed_mkl_product(states: Tensor, weight: Tensor, bias: Tensor) -> Product:
    packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, len(states))
    return partial(torch.ops.mkl._mkl_linear, states, packed, weight, bias, len(states))


def onednn_product(states: Tensor, weight: Tensor, bias: Tensor) -> Product:
    return partial(torch.ops.mkldnn._linear_pointwise, states, weight, bias, "none", [], "")


def packed_onednn_product(states: Tensor, weight: Tensor, bias: Tensor) -> Product:
    return onednn_product(states, torch.ops.mkldnn._reorder_linear_weight(weight, len(states)), bias)


def measure(run: Product) -> float:
    """Seconds of the fastest call."""
    run()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        run()
        best = min(best, time.perf_counter() - start)
    return best


@torch.inference_mode()
def answer(request: Answer) -> Answer:
    speeds: dict[str, float] = {}
    best: dict[str, float] = {}
    for shape, engine, operations, run in products(request["products"]):
        speed = speeds[f"{shape} {engine}"] = operations / measure(run)
        best[engine] = max(speed, best.get(engine, 0.0))
    product = max(speeds, key=lambda name: speeds[name])
    return {"flops": speeds[product], "product": product, "engines": best, "default": OWN, "all": speeds}


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    set_up()
    torch.manual_seed(0)
    return {"torch": torch.__version__}, answer


if __name__ == "__main__":
    answer_requests(make)
