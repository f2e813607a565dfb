"""Spec: a frozen, validated description of a part that builds it. Every spec round-trips through JSON.

A choice between kinds is a union discriminated by `kind`. To extend the house from outside, subclass a spec, give its
field your own type, and hand that spec to `bertie.load`: nothing registers itself.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from bertie.errors import SpecError


class Spec(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields replaced, validated again."""
        return self.parse({**dict(self), **changes})

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """A copy with fields replaced at any depth: `recipe.changed({"encoder.embeddings.factor": 128})`."""
        inner: dict[str, dict[str, Any]] = {}
        own: dict[str, Any] = {}
        for name, value in changes.items():
            first, dot, rest = name.partition(".")
            if dot:
                inner.setdefault(first, {})[rest] = value
            else:
                own[first] = value
        return self.replace(**own, **{name: self._part(name).changed(deeper) for name, deeper in inner.items()})

    def _part(self, name: str) -> "Spec":
        part = getattr(self, name, None)
        if not isinstance(part, Spec):
            raise SpecError(f"{name}: has no fields that could be changed", where=type(self).__name__)
        return part

    @classmethod
    def parse(cls, fields: dict[str, Any], where: str | None = None) -> Self:
        """Validate plain data; a mistake becomes one sentence that names the field."""
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


def first_mistake(error: ValidationError) -> str:
    first, *others = error.errors(include_url=False)
    field = ".".join(str(step) for step in first["loc"])
    more = f" (and {len(others)} more)" if others else ""
    what = first["msg"].removeprefix("Value error, ")
    return f"{field}: {what[:1].lower()}{what[1:]}{more}" if field else f"{what}{more}"
