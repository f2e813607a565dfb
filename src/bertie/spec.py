"""Describes parts as frozen, validated values that build them. Every spec round-trips through JSON.

A choice between kinds is discriminated by `kind`. Where users may bring their own kinds, the field is an open union
(`one_of`): one visible table of kinds, to which `bertie.plugins.use` adds. Other unions are closed; to bring a part of
your own, subclass the spec that holds it, give the field your type, and pass that recipe type to `bertie.load`.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from bertie.errors import SpecError

# Larger models cannot be built. The bounds keep what a stranger's folder states from filling memory, or an integer.
LARGEST, DEEPEST = 2**26, 1000


class Spec(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields replaced, validated again."""
        return self.parse({**dict(self), **changes})

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Returns a copy with fields replaced at any depth: `recipe.changed({"encoder.embeddings.factor": 128})`."""
        inner: dict[str, dict[str, Any]] = {}
        own: dict[str, Any] = {}
        for name, value in changes.items():
            first, dot, rest = name.partition(".")
            if dot:
                inner.setdefault(first, {})[rest] = value
            else:
                own[first] = value
        for name, deeper in inner.items():
            part = getattr(self, name, None)
            if not isinstance(part, Spec):
                raise SpecError(f"{name}: has no fields to change", where=type(self).__name__)
            own[name] = part.changed(deeper)
        return self.replace(**own)

    @classmethod
    def parse(cls, fields: dict[str, Any], where: str | None = None) -> Self:
        """Validates plain data; a mistake becomes one sentence that names the field."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise SpecError(first_mistake(error), where=where or cls.__name__) from None

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str, where: str | None = None) -> Self:
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise SpecError(first_mistake(error), where=where or cls.__name__) from None


def kind_of(spec: type[Spec]) -> str:
    """Returns the `kind` by which plain data names a class of specs."""
    field = spec.model_fields.get("kind")
    if field is None or not isinstance(field.default, str):
        raise SpecError(f"{spec.__name__} has no kind", hint='give it a field: kind: Literal["..."] = "..."')
    return field.default


def one_of(kinds: Mapping[str, type[Spec]], what: str) -> BeforeValidator:
    """Validates a field of an open union: an object passes as it is, plain data is looked up by `kind` in the table.

    Use it as `Annotated[SerializeAsAny[Base], one_of(TABLE, "objective")]`.
    """

    def look_up(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        kind: Any = value.get("kind")
        if kind not in kinds:
            raise ValueError(
                f"no {what} of kind {kind!r} is known; it may come from a plugin: load it with `plugin` "
                f"(known: {', '.join(sorted(kinds))})"
            )
        return kinds[kind].model_validate(value)

    return BeforeValidator(look_up)


def first_mistake(error: ValidationError) -> str:
    first, *others = error.errors(include_url=False)
    field = ".".join(str(step) for step in first["loc"])
    more = f" (and {len(others)} more)" if others else ""
    what = first["msg"].removeprefix("Value error, ")
    return f"{field}: {what[:1].lower()}{what[1:]}{more}" if field else f"{what}{more}"
