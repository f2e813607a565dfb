"""Embeddings: a sum of tables, which is one linear layer over one-hots."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bertie.batch import Batch
from bertie.errors import SpecError
from bertie.nn.embeddings import Embeddings, EmbeddingsSpec, TableSpec

WIDTH = 6


def build(
    *tables: TableSpec, norm_eps: float | None = None, dropout: float = 0.0, factor: int | None = None
) -> Embeddings:
    torch.manual_seed(1)
    return EmbeddingsSpec(tables=tables, norm_eps=norm_eps, dropout=dropout, factor=factor).build(WIDTH)


def row_table(embeddings: Embeddings, name: str) -> Tensor:
    return embeddings.get_parameter(f"tables.{name}.weight")


TOKENS = TableSpec(field="tokens", size=50)
POSITIONS = TableSpec(field="positions", size=12)
SEGMENTS = TableSpec(field="segments", size=2, optional=True)


def test_the_sum_of_tables_is_one_linear_layer_over_one_hots(token_rows: Callable[..., Batch]) -> None:
    embeddings = build(TOKENS, POSITIONS, SEGMENTS)
    batch = token_rows([4, 1, 3], segments=[0, 0, 1, 1, 0, 1, 1, 1])
    one_hots = torch.cat(
        [
            F.one_hot(batch.tensor("tokens"), 50),
            F.one_hot(torch.tensor([0, 1, 2, 3, 0, 0, 1, 2]), 12),
            F.one_hot(batch.tensor("segments"), 2),
        ],
        dim=1,
    ).float()
    weight = torch.cat([row_table(embeddings, name) for name in embeddings.tables]).T  # [H, 50 + 12 + 2]
    torch.testing.assert_close(embeddings(batch), F.linear(one_hots, weight))


def test_an_absent_optional_field_counts_as_zeros(token_rows: Callable[..., Batch]) -> None:
    embeddings = build(TOKENS, POSITIONS, SEGMENTS, norm_eps=1e-12)
    batch = token_rows([3, 2])
    zeros = batch.with_fields({"segments": batch.ragged("tokens").with_values(torch.zeros(5, dtype=torch.int64))})
    assert embeddings(batch).equal(embeddings(zeros))


def test_an_absent_optional_field_still_learns(token_rows: Callable[..., Batch]) -> None:
    embeddings = build(TOKENS, SEGMENTS)
    embeddings(token_rows([3])).sum().backward()
    gradient = row_table(embeddings, "segments").grad
    assert gradient is not None
    assert gradient.tolist() == [[3.0] * WIDTH, [0.0] * WIDTH]


def test_an_absent_field_that_is_not_optional_is_missed(token_rows: Callable[..., Batch]) -> None:
    with pytest.raises(KeyError, match="languages"):
        build(TOKENS, TableSpec(field="languages", size=2))(token_rows([3]))


def test_positions_begin_at_the_offset(token_rows: Callable[..., Batch]) -> None:
    plain = build(TableSpec(field="positions", size=12))
    moved = build(TableSpec(field="positions", size=12, offset=2))
    batch = token_rows([4, 2])
    weight = row_table(plain, "positions")
    assert plain(batch).equal(weight[[0, 1, 2, 3, 0, 1]])
    assert moved(batch).equal(weight[[2, 3, 4, 5, 2, 3]])


def test_given_positions_are_used_and_moved_on_too(token_rows: Callable[..., Batch]) -> None:
    moved = build(TableSpec(field="positions", size=12, offset=2))
    assert moved(token_rows([3], positions=[5, 0, 1])).equal(row_table(moved, "positions")[[7, 2, 3]])


def test_norm_then_dropout(token_rows: Callable[..., Batch]) -> None:
    embeddings = build(TOKENS, norm_eps=1e-12, dropout=0.5)
    batch = token_rows([40])
    still = embeddings.eval()(batch)
    torch.testing.assert_close(still.mean(-1), torch.zeros(40), atol=1e-6, rtol=0)
    dropped = embeddings.train()(batch)
    assert ((dropped == 0) | torch.isclose(dropped, still * 2)).all()
    assert 0.3 < (dropped == 0).float().mean() < 0.7


def test_no_norm_where_none_is_wanted() -> None:
    assert build(TOKENS).state_dict().keys() == {"tables.tokens.weight"}


def test_an_unknown_table_is_named() -> None:
    spec = EmbeddingsSpec(tables=(TOKENS, POSITIONS))
    assert spec.table("positions") == POSITIONS
    with pytest.raises(SpecError, match=r"no table for 'languages'.*'tokens', 'positions'"):
        spec.table("languages")


@pytest.mark.parametrize("field", ["type", "values", "x.y"])
def test_a_name_that_no_part_can_have_is_refused_where_it_is_given(field: str) -> None:
    """Tables are parts by the name of their field, and torch keeps some names for itself."""
    with pytest.raises(SpecError, match=field):
        EmbeddingsSpec.parse({"tables": [{"field": field, "size": 3}]})


def test_narrow_tables_are_summed_normed_and_then_projected(token_rows: Callable[..., Batch]) -> None:
    embeddings = build(TOKENS, POSITIONS, norm_eps=1e-12, factor=4)
    batch = token_rows([4, 1, 3])
    rows = row_table(embeddings, "tokens")[batch.tensor("tokens")]
    summed = rows + row_table(embeddings, "positions")[batch.ragged("tokens").positions]
    assert embeddings.project is not None
    expected = F.linear(F.layer_norm(summed, (4,), eps=1e-12), embeddings.project.weight, embeddings.project.bias)
    torch.testing.assert_close(embeddings(batch), expected)
    assert embeddings(batch).shape == (8, WIDTH)


def test_the_tables_width_is_told() -> None:
    spec = EmbeddingsSpec(tables=(TOKENS,))
    assert (spec.table_width(WIDTH), spec.replace(factor=4).table_width(WIDTH)) == (WIDTH, 4)
    narrow = sum(parameter.numel() for parameter in spec.replace(factor=2, norm_eps=None).build(WIDTH).parameters())
    assert narrow == 50 * 2 + 2 * WIDTH + WIDTH


def test_a_norm_without_a_bias() -> None:
    names = EmbeddingsSpec(tables=(TOKENS,), norm_bias=False).build(WIDTH).state_dict().keys()
    assert names == {"tables.tokens.weight", "norm.weight"}
