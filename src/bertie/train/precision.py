"""In what precision to train: a wish enters, a choice and its reason leave. Decided by measuring, once a machine."""

from bertie.errors import SpecError
from bertie.machine import cpu_flags, probe
from bertie.train.loop import Precision

CHOICES = ("auto", "float32", "bfloat16")
WORTHWHILE = 2.5  # times the speed of float32 products: the rest of a step gains nothing, and loses our kernels
INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


def choose_precision(wish: str) -> tuple[Precision, str]:
    if wish == "float32":
        return "float32", "as asked"
    advertised = bool(cpu_flags() & INSTRUCTIONS)
    if wish == "bfloat16" and not advertised:
        return "bfloat16", "as asked, though the processor has no instructions for it"
    if not advertised:
        return "float32", "the processor has no instructions for bfloat16"
    measured = probe().precisions  # also of what was asked for: it may end the process here
    if wish == "bfloat16":
        if not measured["bfloat16"].runs:
            raise SpecError(f"bfloat16 {measured['bfloat16'].note} on this machine", hint="give --precision float32")
        return "bfloat16", "as asked"
    plain, short = measured["float32"].speed, measured["bfloat16"].speed
    if plain is None or short is None:
        return "float32", f"bfloat16 {measured['bfloat16'].note or 'was not measured'} here"
    chosen: Precision = "bfloat16" if short >= WORTHWHILE * plain else "float32"
    return chosen, f"products in bfloat16 run at {short / plain:.2f} times their speed in float32 here"
