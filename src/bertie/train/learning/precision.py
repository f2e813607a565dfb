"""Chooses the precision to train in, and gives the reason.

Matrix products are measured once on each machine. They decide only for wide models, where they are most of the work:
the rest of a step gains nothing from bfloat16, and loses our own kernels, which narrow models and rows of different
lengths need.
"""

import torch

from bertie.devices import CPU, describe, has_bfloat16
from bertie.errors import SpecError
from bertie.machine import cpu_flags, probe
from bertie.train.loop import DTYPES, Precision

CHOICES = ("auto", "float32", "bfloat16")
WORTHWHILE = 3.0  # times the speed of float32 products
WIDE = 768  # with products 6.5 times as fast, steps of this width are 1.3 times as fast, of 512 0.8, of 256 0.5
INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


def choose_precision(given: str, width: int) -> tuple[Precision, str]:
    """`width` is that of the encoder."""
    if given == "float32":
        return "float32", "as asked"
    advertised = bool(cpu_flags() & INSTRUCTIONS)
    if given == "bfloat16" and not advertised:
        return "bfloat16", "as asked, though the processor has no instructions for it"
    if not advertised:
        return "float32", "the processor has no instructions for bfloat16"
    if given == "auto" and width < WIDE:
        return "float32", f"at width {width:,} it is faster than bfloat16"
    measured = probe().precisions  # also where it was given: it may end the process here
    if given == "bfloat16":
        if not measured["bfloat16"].runs:
            raise SpecError(f"bfloat16 {measured['bfloat16'].note} on this machine", hint="give `precision=float32`")
        return "bfloat16", "as asked"
    plain, short = measured["float32"].speed, measured["bfloat16"].speed
    if plain is None or short is None:
        return "float32", f"bfloat16 {measured['bfloat16'].note or 'was not measured'} here"
    chosen: Precision = "bfloat16" if short >= WORTHWHILE * plain else "float32"
    return chosen, f"products in bfloat16 run at {short / plain:.2f} times their speed in float32 here"


def precision_on(device: torch.device, given: str, width: int, begun: str | None = None) -> tuple[Precision, str]:
    """The precision on a device. `begun` is that of the run which is continued, perhaps on another device: a run keeps
    its precision."""
    chosen = choose_precision(given, width) if device == CPU else _gpu_precision(device, given)
    if given == "auto" and begun in DTYPES and begun != chosen[0]:
        precision, _ = precision_on(device, begun, width)
        return precision, "the run began in it"
    return chosen


def on_device(device: torch.device) -> str:
    """For a message; nothing for the CPU."""
    return "" if device == CPU else f"on {describe(device)} "


def _gpu_precision(device: torch.device, given: str) -> tuple[Precision, str]:
    if given != "auto":
        return ("bfloat16" if given == "bfloat16" else "float32"), "as asked"
    if has_bfloat16(device):
        return "bfloat16", "the GPU has instructions for it"
    return "float32", "the GPU is not known to be faster in bfloat16"
