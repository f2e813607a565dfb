"""Specs in words: a spec, or the value of a field of one, enters; words for a person leave."""

from typing import Any

from bertie.nn.attention import AttentionSpec
from bertie.nn.feed_forward import DenseSpec, GatedSpec
from bertie.spec import Spec


def told(value: Any) -> str:
    """A spec is told by its kind and by what is not as it always is."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
        case tuple() | list():
            return ", ".join(map(told, value)) or "none"
        case Spec():
            return _spec_told(value)
        case _:
            return str(value)


def part_told(spec: Spec, width: int) -> str:
    """A part of this width. Of kinds that are not known here the fields are told."""
    match spec:
        case AttentionSpec():
            heads = "1 head" if spec.num_heads == 1 else f"{spec.num_heads} heads"
            words = ["attention", f"{heads} of {width // spec.num_heads}", told(spec.scorer)]
            words += [f"memory of {spec.memory_length:,}"] if spec.memory_length else []
            return ", ".join(words if spec.bias else [*words, "no biases"])
        case DenseSpec() | GatedSpec():
            words = [f"{spec.kind} {width:,} -> {spec.inner:,}", spec.activation]
            return ", ".join(words if getattr(spec, "bias", True) else [*words, "no biases"])
        case _:
            return told(spec)


def _spec_told(spec: Spec) -> str:
    """What has no kind tells all of its fields."""
    kind = str(getattr(spec, "kind", ""))
    usual = {name: field.get_default(call_default_factory=True) for name, field in type(spec).model_fields.items()}
    fields = {name: getattr(spec, name) for name in usual if name != "kind"}
    words = [f"{name} {told(value)}" for name, value in fields.items() if not kind or value != usual[name]]
    return f"{kind}({', '.join(words)})" if words else kind
