"""Chooses the precision of matrix products in training, and gives the reason.

Weights, states, sums and losses are float32 in any case. Products in bfloat16 are taken where the processor has
instructions for them and they were measured to be worth it at the width of the model.
"""

import torch

from bertie.devices import CPU, describe, has_bfloat16
from bertie.errors import SpecError
from bertie.machine import cpu_flags
from bertie.nn.products.choice import NEAR, Class, Precision, Role, class_of
from bertie.nn.products.engines import ENGINES
from bertie.nn.products.measuring import Reports, measured_engines

CHOICES = ("auto", "float32", "bfloat16")
WORTHWHILE = 1.5  # times the speed of float32 products
INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}
SHORT_ENGINE = "onednn-bfloat16"
LEARNING = (Role.FORWARD, Role.STATES_GRADIENT, Role.WEIGHT_GRADIENT)


def choose_precision(given: str, width: int) -> tuple[Precision, str]:
    """`width` is that of the encoder."""
    if given == "float32":
        return "float32", "as asked"
    if not cpu_flags() & INSTRUCTIONS:
        if given == "bfloat16":
            return "bfloat16", "as asked, but the processor has no instructions for it: products may stay in float32"
        return "float32", "the processor has no instructions for bfloat16"
    reports = measured_engines(short=True)  # also where it was given: it may end a process here
    if note := reports[SHORT_ENGINE].note:
        if given == "bfloat16":
            raise SpecError(f"bfloat16 {note} on this machine", hint="give `precision=float32`")
        return "float32", f"bfloat16 {note} here"
    if given == "bfloat16":
        return "bfloat16", "as asked"
    gain = gain_of_short_products(reports, width)
    chosen: Precision = "bfloat16" if gain >= WORTHWHILE else "float32"
    return chosen, f"products in bfloat16 run at {gain:.2f} times their speed in float32 at width {width:,} here"


def gain_of_short_products(reports: Reports, width: int) -> float:
    """How many times as fast the three products of a layer of this width are in bfloat16, each by its best engine."""
    kind = class_of((4 * width, width))
    exact = [name for name in reports if ENGINES[name].exact]
    return _seconds(reports, kind, exact) / _seconds(reports, kind, [SHORT_ENGINE])


def _seconds(reports: Reports, kind: Class, names: list[str]) -> float:
    """Of one FLOP of each product."""
    total = 0.0
    for role in LEARNING:
        key = f"{role}, {kind}"
        found = [reports[name].products[key] for name in names if key in reports[name].products]
        allowed = min(one.error for one in found) * NEAR
        total += 1 / max(one.speed for one in found if one.error <= allowed)
    return total


def precision_on(device: torch.device, given: str, width: int, begun: str | None = None) -> tuple[Precision, str]:
    """The precision on a device. `begun` is that of the run which is continued, perhaps on another device: a run keeps
    its precision."""
    chosen = choose_precision(given, width) if device == CPU else _gpu_precision(device, given)
    if given == "auto" and begun in CHOICES[1:] and begun != chosen[0]:
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
