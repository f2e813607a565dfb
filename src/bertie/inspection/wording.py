"""Describes specs, and values of their fields, in words."""

from typing import Any

from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.feed_forward import DenseSpec, GatedSpec
from bertie.spec import Spec


def describe(value: Any) -> str:
    """Describes a value; a spec by its kind and by the fields that are not at their defaults."""
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
            return ", ".join(map(describe, value)) or "none"
        case Spec():
            return _describe_spec(value)
        case _:
            return str(value)


def describe_part(spec: Spec, width: int) -> str:
    """Describes a part of this width; kinds that are not known here by their fields."""
    match spec:
        case AttentionSpec():
            heads = "1 head" if spec.num_heads == 1 else f"{spec.num_heads} heads"
            words = ["attention", f"{heads} of {spec.width_of_head(width)}", describe(spec.scorer)]
            words += [f"memory of {spec.memory_length:,}"] if spec.memory_length else []
            return ", ".join(words if spec.bias else [*words, "no biases"])
        case DenseSpec() | GatedSpec():
            words = [f"{spec.kind} {width:,} -> {spec.inner:,}", spec.activation]
            return ", ".join(words if getattr(spec, "bias", True) else [*words, "no biases"])
        case _:
            return describe(spec)


def _describe_spec(spec: Spec) -> str:
    """Describes a spec; one without a kind by all of its fields."""
    kind = str(getattr(spec, "kind", ""))
    usual = {
        name: field.get_default(call_default_factory=True, validated_data={"kind": kind})
        for name, field in type(spec).model_fields.items()
    }
    fields = {name: getattr(spec, name) for name in usual if name != "kind"}
    words = [f"{name} {describe(value)}" for name, value in fields.items() if not kind or value != usual[name]]
    return f"{kind}({', '.join(words)})" if words else kind
