"""Each visibility against a predicate in plain Python, on every pair of tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.errors import InputError, SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.layout import Layout, Side
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.visibility import (
    And,
    AntiCausal,
    Causal,
    Facts,
    Full,
    Marked,
    Or,
    Permutation,
    Prefix,
    Same,
    Visibility,
    Window,
)

Token = Mapping[str, int]
Predicate = Callable[[Token, Token], bool]
FIELDS = ("documents", "marked", "prefix", "order")

VALUES: dict[str, tuple[Visibility, Predicate]] = {
    "full": (Full(), lambda q, k: True),
    "causal": (Causal(), lambda q, k: k["positions"] <= q["positions"]),
    "following": (AntiCausal(), lambda q, k: k["positions"] >= q["positions"]),
    "window": (Window(reach=2), lambda q, k: abs(q["positions"] - k["positions"]) <= 2),
    "window of itself": (Window(reach=0), lambda q, k: q["positions"] == k["positions"]),
    "dilated": (
        Window(reach=2, dilation=3),
        lambda q, k: q["positions"] - k["positions"] in (-6, -3, 0, 3, 6),
    ),
    "same": (Same(), lambda q, k: q["documents"] == k["documents"]),
    "marked": (Marked(), lambda q, k: q["marked"] == 1 or k["marked"] == 1),
    "prefix": (Prefix(), lambda q, k: k["prefix"] != 0),
    "permutation": (Permutation(), lambda q, k: k["order"] <= q["order"]),
    "strict permutation": (Permutation(strict=True), lambda q, k: k["order"] < q["order"]),
    "prefix or causal": (Prefix() | Causal(), lambda q, k: k["prefix"] != 0 or k["positions"] <= q["positions"]),
    "nested": (
        (Causal() & Window(reach=1) & Same()) | Marked(),
        lambda q, k: (
            (0 <= q["positions"] - k["positions"] <= 1 and q["documents"] == k["documents"])
            or 1 in (q["marked"], k["marked"])
        ),
    ),
}

visibilities = st.recursive(
    st.sampled_from(
        [Full(), Causal(), AntiCausal(), Window(reach=1), Window(reach=2, dilation=2), Same(), Marked(), Prefix()]
    ),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from([And(parts=tuple(parts)), Or(parts=tuple(parts))])
    ),
    max_leaves=6,
)


def random_batch(sizes: Sequence[int], seed: int = 0) -> tuple[Batch, list[list[Token]]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(list(sizes))
    rows = Ragged(torch.zeros(int(lengths.sum()), dtype=torch.int64), lengths)
    fields = {name: rows.with_values(torch.randint(0, 2, rows.values.shape, generator=generator)) for name in FIELDS}
    fields["order"] = Ragged.of([torch.randperm(size, generator=generator) for size in sizes])
    tokens: list[list[Token]] = [
        [{"positions": at, **{name: int(fields[name].rows()[row][at]) for name in FIELDS}} for at in range(size)]
        for row, size in enumerate(sizes)
    ]
    return Batch({"tokens": rows, **fields}), tokens


def check(layout: Layout, queries: list[list[Token]], keys: list[list[Token]], predicate: Predicate) -> None:
    longest = max(len(row) for row in queries), max(len(row) for row in keys)
    allowed = layout.allowed.expand(len(queries), 1, *longest)
    for row, (own, others) in enumerate(zip(queries, keys, strict=True)):
        for i, query in enumerate(own):
            seen = [predicate(query, key) for key in others] + [False] * (longest[1] - len(others))
            assert allowed[row, 0, i].tolist() == seen, (row, i)


@pytest.mark.parametrize("name", VALUES)
def test_value_equals_its_predicate_on_every_pair(name: str) -> None:
    visibility, predicate = VALUES[name]
    batch, tokens = random_batch([9, 4, 1, 6])
    side = Side.of(batch)
    check(Layout(side, side, visibility), tokens, tokens, predicate)


@pytest.mark.parametrize("name", VALUES)
def test_remembered_tokens_stand_before_and_have_no_other_facts(name: str) -> None:
    visibility, predicate = VALUES[name]
    batch, tokens = random_batch([5, 2, 3])
    side = Side.of(batch)
    remembered = [2, 0, 3]
    memory = Ragged(torch.randn(sum(remembered), 4), torch.tensor(remembered))
    keys = [
        [{"positions": at - count, **dict.fromkeys(FIELDS, -1)} for at in range(count)] + row
        for count, row in zip(remembered, tokens, strict=True)
    ]
    check(Layout(side, side, visibility).behind(memory), tokens, keys, predicate)


@given(visibilities, visibilities)
def test_and_and_or_are_those_of_logic(left: Visibility, right: Visibility) -> None:
    batch, _ = random_batch([4, 2])
    side = Side.of(batch)

    def allowed(visibility: Visibility) -> Tensor:
        return Layout(side, side, visibility).allowed.expand(2, 1, 4, 4)

    assert allowed(left & right).equal(allowed(left) & allowed(right))
    assert allowed(left | right).equal(allowed(left) | allowed(right))


@given(visibilities)
def test_nested_expressions_round_trip_through_json(visibility: Visibility) -> None:
    spec = StackSpec(depth=1, block=BlockSpec(mixer=AttentionSpec(num_heads=1)), visibility=(visibility, Causal()))
    back = StackSpec.from_json(spec.to_json())
    assert back == spec
    assert back.visibility == (visibility, Causal())


def test_full_is_neutral_for_and_and_all_for_or() -> None:
    assert Full() & Causal() == Causal() & Full() == Causal()
    assert Full() | Causal() == Causal() | Full() == Full()


@pytest.mark.parametrize("wrong", [{"kind": "widow"}, {"kind": "and", "parts": [{"kind": "full"}, {"kind": "widow"}]}])
@pytest.mark.parametrize("listed", [False, True])
def test_a_wrong_kind_is_named_with_the_choices(wrong: dict[str, object], listed: bool) -> None:
    plain = {
        "depth": 1,
        "block": {"mixer": {"kind": "attention", "num_heads": 1}},
        "visibility": [wrong] if listed else wrong,
    }
    with pytest.raises(SpecError) as caught:
        StackSpec.parse(plain)
    assert "visibility" in str(caught.value)
    assert "'widow'" in str(caught.value)
    assert " causal, " in str(caught.value)


@pytest.mark.parametrize("wrong", [{"kind": "window"}, {"kind": "window", "reach": -1}])
def test_a_wrong_setting_of_a_right_kind_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="reach"):
        StackSpec.parse({"depth": 1, "block": {"mixer": {"kind": "attention", "num_heads": 1}}, "visibility": wrong})


@pytest.mark.parametrize(
    ("visibility", "field"),
    [(Same(), "documents"), (Marked(), "marked"), (Prefix(), "prefix"), (Permutation(), "order")],
)
def test_a_missing_field_is_named(visibility: Visibility, field: str) -> None:
    side = Side(Ragged.of([[0, 1]]))
    with pytest.raises(InputError, match=f"the batch has no field '{field}', which the model's visibility asks for"):
        _ = Layout(side, side, visibility).allowed


def test_a_field_of_other_lengths_is_refused() -> None:
    side = Side.of(Batch({"tokens": Ragged.of([[1, 2], [3]]), "documents": Ragged.of([[0], [0, 0]])}))
    with pytest.raises(InputError, match="'documents' has rows of other lengths"):
        _ = Layout(side, side, Same()).allowed


class Even(Visibility):
    """A visibility that the house does not know."""

    kind: Literal["even"] = "even"

    def allows(self, query: Facts, key: Facts) -> Tensor:
        return key["positions"] % 2 == query["positions"] * 0


def test_a_visibility_of_ones_own_combines_with_the_others() -> None:
    batch, tokens = random_batch([5, 2])
    side = Side.of(batch)

    def both(q: Token, k: Token) -> bool:
        return k["positions"] <= q["positions"] and k["positions"] % 2 == 0

    check(Layout(side, side, Causal() & Even()), tokens, tokens, both)
    check(Layout(side, side, Causal()).seen_by(Even()), tokens, tokens, both)
    check(Layout(side, side, Even() | Window(reach=0)), tokens, tokens, lambda q, k: k["positions"] % 2 == 0 or q is k)


def test_before_and_behind_together_are_itself_and_either_is_all() -> None:
    side = Side.of(random_batch([5])[0])
    assert Layout(side, side, Causal() & AntiCausal()).allowed[0, 0].equal(torch.eye(5, dtype=torch.bool))
    assert Layout(side, side, Causal() | AntiCausal()).allowed.all()
