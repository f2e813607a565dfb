"""Chooses the device to compute on, and holds all that is done differently on a GPU.

Everything else follows the tensors: a model is moved, its batches are moved to it, and whatever is made on the way is
made where its inputs are. Only what is copied to the CPU waits for the GPU. None of what is for CUDA and MPS alone has
been measured: it follows torch's documentation.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertie.errors import SpecError

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
CPU = torch.device("cpu")
HELP = "Where to compute: cpu, cuda or mps; auto takes a GPU if there is one."
FUSED = ("cpu", "cuda")  # where torch's AdamW has a kernel for all parameters at once
HALF = (torch.bfloat16, torch.float16)


# --- choosing


def choose_device(wanted: str | torch.device = "auto") -> torch.device:
    """The device of that name, else a sentence that says why not. Of the processes that `torchrun` starts on one
    machine each has a CUDA device of its own."""
    if isinstance(wanted, torch.device):
        return wanted
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    match wanted:
        case "auto":
            return choose_device("cuda" if has_cuda else "mps" if has_mps and alone else "cpu")
        case "cpu":
            return CPU
        case "cuda" if has_cuda:
            number = int(os.environ.get("LOCAL_RANK", "0"))
            if number >= torch.cuda.device_count():
                what = f"process {number + 1} on this machine has no CUDA device: there are {torch.cuda.device_count()}"
                raise SpecError(what, hint="start fewer processes, or give `device=cpu`")
            return torch.device("cuda", number)
        case "mps" if has_mps and alone:
            return torch.device("mps")
        case "mps" if has_mps:
            raise SpecError("processes cannot share a run on mps", hint="start one process, or give `device=cpu`")
        case "cuda" | "mps":
            built = torch.backends.cuda.is_built() if wanted == "cuda" else torch.backends.mps.is_built()
            why = "this machine has none" if built else f"this build of torch ({torch.__version__}) is not made for it"
            raise SpecError(f"`device={wanted}`: {why}", hint="give `device=cpu`, or leave it out")
        case _:
            raise SpecError(f"there is no device {wanted!r}", hint="choose from auto, cpu, cuda, mps")


def device_of(part: nn.Module) -> torch.device:
    """Where its parameters are; one without any computes on the CPU."""
    first = next(part.parameters(), None)
    return CPU if first is None else first.device


def describe(device: torch.device) -> str:
    """In words, for logs and messages."""
    return f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type


# --- copying


def copied(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on a device; itself where it is there already. To CUDA it goes through pinned memory, so that the
    copy does not wait for what the GPU still has to do; torch keeps that memory until the copy is done."""
    device = torch.device(device)
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def fetched(numbers: Sequence[Tensor]) -> list[Tensor]:
    """Single numbers on the CPU, all by one copy: every copy waits for the GPU."""
    if all(number.device.type == "cpu" for number in numbers):
        return list(numbers)
    widest = widest_float(next(number.device for number in numbers if number.device.type != "cpu"))
    return list(torch.stack([number.detach().to(widest.device, widest.dtype) for number in numbers]).cpu().unbind())


def widest_float(device: torch.device) -> Tensor:
    """An empty tensor of the most exact type that a device has."""
    return torch.empty(0, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)


# --- random numbers


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws on the CPU from a seed, and leaves no trace in any generator. What is drawn for a model is drawn here,
    wherever it computes then."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


@dataclass(frozen=True)
class RandomState:
    """What decides the next random numbers on the CPU and on one other device."""

    device: torch.device
    cpu: Tensor
    own: Tensor | None

    @classmethod
    def now(cls, device: torch.device) -> "RandomState":
        return cls(device, torch.get_rng_state(), _generator(device).get_rng_state(device) if _draws(device) else None)

    def set(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.own is not None:
            _generator(self.device).set_rng_state(self.own, self.device)

    @contextmanager
    def again(self, keep: bool = False) -> Iterator[None]:
        """Draws once more what was drawn from here on. Leaves no trace in the generators, unless told to `keep` it."""
        before = RandomState.now(self.device)
        self.set()
        try:
            yield
        finally:
            if not keep:
                before.set()


def _draws(device: torch.device) -> bool:
    return device.type in ("cuda", "mps")


def _generator(device: torch.device) -> Any:
    return torch.cuda if device.type == "cuda" else torch.mps


# --- computing


def autocast(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[Any]:
    """Matrix products in this type; float32 is what they are in anyway. The CPU's are chosen in nn/products."""
    if dtype == torch.float32 or device == CPU:
        return nullcontext()
    return torch.autocast(device.type, dtype)


def has_bfloat16(device: torch.device) -> bool:
    """Whether a GPU computes in it without emulating it. The CPU is measured, see machine.py."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def is_fused(model: nn.Module) -> bool:
    """Whether all parameters can be updated by one kernel."""
    return all(one.is_floating_point() and one.device.type in FUSED for one in model.parameters())


def process_group(device: torch.device) -> str:
    """The backend for processes that train together: each tensor travels by the one for its device, so gradients by
    nccl and what is known on the CPU without waiting for the GPU."""
    if device.type != "cuda":
        return "gloo"
    torch.cuda.set_device(device)
    return "cpu:gloo,cuda:nccl"


def memory_on(device: torch.device) -> tuple[int, int] | None:
    """Bytes that torch took of a GPU at most, and all that it has; None where nothing counts them."""
    if device.type != "cuda":
        return None
    return torch.cuda.max_memory_reserved(device), torch.cuda.get_device_properties(device).total_memory


# --- attention over rows of different length


@dataclass(frozen=True)
class FlatRows:
    """Rows that lie one after another in flat states."""

    offsets: Tensor  # [B + 1] on the device of the states: where rows begin, and where the last one ends
    shortest: int
    longest: int

    def nested(self, states: Tensor) -> Tensor:
        """[T, N, D] -> [B, N, length of the row, D], without a copy."""
        made = torch.nested.nested_tensor_from_jagged(
            states, self.offsets, min_seqlen=self.shortest, max_seqlen=self.longest
        )
        return made.transpose(1, 2)


def takes_flat_rows(query: Tensor) -> bool:
    """Whether its device has kernels for attention over flat rows."""
    return query.device.type == "cuda"


def attend_flat(
    states: tuple[Tensor, Tensor, Tensor],
    rows: tuple[FlatRows, FlatRows],
    dropout: float = 0.0,
    reach: int | None = None,
) -> Tensor | None:
    """Queries, keys and values [T, N, D] and the rows of queries and keys -> [Tq, N, D]. With a reach a token sees no
    further than that to either side. None where no kernel does it: for empty rows, and with a reach for dropout, for
    full precision and for heads whose width is no multiple of 8."""
    (query, key, value), (queries, keys) = states, rows
    if not (queries.shortest and keys.shortest):
        return None
    if reach is not None:
        half = query.dtype in HALF or torch.is_autocast_enabled("cuda")
        return _attend_near(states, rows, reach) if half and not dropout and query.shape[-1] % 8 == 0 else None
    nested = queries.nested(query), keys.nested(key), keys.nested(value)
    return F.scaled_dot_product_attention(*nested, dropout_p=dropout).transpose(1, 2).values()


def _attend_near(states: tuple[Tensor, Tensor, Tensor], rows: tuple[FlatRows, FlatRows], reach: int) -> Tensor:
    """Every token sees those at most `reach` tokens away. Autocast does not know this function."""
    from torch.nn.attention.varlen import varlen_attn

    dtype = states[0].dtype if states[0].dtype in HALF else torch.get_autocast_dtype("cuda")
    query, key, value = (one.to(dtype) for one in states)
    ends, key_ends = (one.offsets.to(torch.int32) for one in rows)
    sizes = rows[0].longest, rows[1].longest
    mixed = varlen_attn(query, key, value, ends, key_ends, *sizes, window_size=(reach, reach))
    assert isinstance(mixed, Tensor)
    return mixed
