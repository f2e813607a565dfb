"""Defines which tokens may see which: frozen values that combine with `&` and `|`.

The reference scorer uses only `allows`. Rows never see each other and padding is never seen: the layout takes care of
that. Remembered tokens of an earlier call have -1 in every field but `positions`.
"""

from typing import Annotated, Literal, Protocol

from pydantic import Field, SerializeAsAny
from torch import Tensor

from bertie.spec import Spec, kind_of, one_of


class Facts(Protocol):
    """What is known of each token, by field name; queries and keys come shaped so that they broadcast."""

    def __getitem__(self, name: str) -> Tensor: ...


class Visibility(Spec):
    def allows(self, query: Facts, key: Facts) -> Tensor:
        """True where the query may see the key; broadcastable to [B, N, Lq, Lk]."""
        raise NotImplementedError

    def __and__(self, other: "Visibility") -> "Visibility":
        if isinstance(self, Full):
            return other
        return self if isinstance(other, Full) else And(parts=(self, other))

    def __or__(self, other: "Visibility") -> "Visibility":
        return Full() if isinstance(self, Full) or isinstance(other, Full) else Or(parts=(self, other))


VISIBILITIES: dict[str, type[Visibility]] = {}  # by kind; filled below, and `bertie.plugins.use` adds to it
AnyVisibility = Annotated[SerializeAsAny[Visibility], one_of(VISIBILITIES, "visibility")]


class Full(Visibility):
    """Every token of the same row."""

    kind: Literal["full"] = "full"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return query["positions"] == query["positions"]


class Causal(Visibility):
    """The token itself and those before it."""

    kind: Literal["causal"] = "causal"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return key["positions"] <= query["positions"]


class AntiCausal(Visibility):
    """The token itself and those after it."""

    kind: Literal["anti-causal"] = "anti-causal"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return key["positions"] >= query["positions"]


class Window(Visibility):
    """At most `reach` steps of `dilation` to either side."""

    kind: Literal["window"] = "window"
    reach: int = Field(ge=0)
    dilation: int = Field(default=1, ge=1)

    def allows(self, query: Facts, key: Facts) -> Tensor:
        distance = (query["positions"] - key["positions"]).abs()
        return (distance <= self.reach * self.dilation) & (distance % self.dilation == 0)


class Same(Visibility):
    """Tokens with the same value of a field, e.g. of the same document in a packed row."""

    kind: Literal["same"] = "same"
    field: str = "documents"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return query[self.field] == key[self.field]


class Marked(Visibility):
    """Global tokens: what is marked in a field is seen by all and sees all."""

    kind: Literal["marked"] = "marked"
    field: str = "marked"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return (query[self.field] == 1) | (key[self.field] == 1)


class Prefix(Visibility):
    """Tokens marked as prefix, which all tokens see: `Prefix() | Causal()`."""

    kind: Literal["prefix"] = "prefix"
    field: str = "prefix"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return (key[self.field] != 0) & (query["positions"] == query["positions"])


class Permutation(Visibility):
    """Tokens that come earlier in a given order; `strict` hides the token itself (the query stream)."""

    kind: Literal["permutation"] = "permutation"
    field: str = "order"
    strict: bool = False

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return key[self.field] < query[self.field] if self.strict else key[self.field] <= query[self.field]


class And(Visibility):
    kind: Literal["and"] = "and"
    parts: tuple[AnyVisibility, ...] = Field(min_length=1)

    def allows(self, query: Facts, key: Facts) -> Tensor:
        first, *others = (part.allows(query, key) for part in self.parts)
        for other in others:
            first = first & other
        return first


class Or(Visibility):
    kind: Literal["or"] = "or"
    parts: tuple[AnyVisibility, ...] = Field(min_length=1)

    def allows(self, query: Facts, key: Facts) -> Tensor:
        first, *others = (part.allows(query, key) for part in self.parts)
        for other in others:
            first = first | other
        return first


BUILT_IN = (Full, Causal, AntiCausal, Window, Same, Marked, Prefix, Permutation, And, Or)
VISIBILITIES.update({kind_of(one): one for one in BUILT_IN})
