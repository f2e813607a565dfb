"""The float32 peak: a model's shapes enter with a request, the fastest matrix product among them leaves.

Both ways that torch has are tried: its BLAS, and oneDNN with a weight packed beforehand.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.contenders.protocol import Answer, answer_requests

NUM_TOKENS = (512, 1024, 2048, 4096)
SECONDS = 0.1  # for each product


def products(shapes: Sequence[Sequence[int]]) -> Iterator[tuple[str, int, Callable[[], Tensor]]]:
    """Name, operations and the product itself."""
    for num_tokens in NUM_TOKENS:
        for inputs, outputs in shapes:
            states, weight, bias = torch.randn(num_tokens, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
            shape, operations = f"[{num_tokens}, {inputs}] x [{inputs}, {outputs}]", 2 * num_tokens * inputs * outputs
            yield f"{shape} BLAS", operations, partial(F.linear, states, weight, bias)
            if torch.backends.mkldnn.is_available():
                yield f"{shape} oneDNN", operations, packed_product(states, weight, bias)


def packed_product(states: Tensor, weight: Tensor, bias: Tensor) -> Callable[[], Tensor]:
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, len(states))
    return partial(torch.ops.mkldnn._linear_pointwise, states, packed, bias, "none", [], "")


def measure(run: Callable[[], Tensor]) -> float:
    """Seconds of the fastest call."""
    run()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        run()
        best = min(best, time.perf_counter() - start)
    return best


def make() -> tuple[dict[str, str], Callable[[Answer], Answer]]:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)

    @torch.inference_mode()
    def answer(request: Answer) -> Answer:
        speeds = {name: operations / measure(run) for name, operations, run in products(request["products"])}
        best = max(speeds, key=lambda name: speeds[name])
        return {"flops": speeds[best], "product": best, "all": speeds}

    return {"torch": torch.__version__}, answer


if __name__ == "__main__":
    answer_requests(make)
