"""Random rows of tokens for the parts."""

from collections.abc import Callable, Sequence

import pytest
import torch

from bertie.batch import Batch, Ragged


@pytest.fixture(scope="session")
def token_rows() -> Callable[..., Batch]:
    """`token_rows([3, 1], documents=[...])`: a batch with random tokens; further fields as flat lists."""

    def make(sizes: Sequence[int], **fields: Sequence[int]) -> Batch:
        rows = Ragged(torch.randint(0, 50, (sum(sizes),)), torch.tensor(list(sizes), dtype=torch.int64))
        return Batch({"tokens": rows, **{name: rows.with_values(torch.tensor(flat)) for name, flat in fields.items()}})

    return make
