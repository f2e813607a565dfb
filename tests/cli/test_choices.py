"""Words of the command line: wrong values are told with their flags."""

from typing import Any

import pytest

from bertie.cli.choices import told_by_flags
from bertie.cli.finetune import FLAGS as OF_FINETUNE
from bertie.cli.pretrain_request import FLAGS as OF_PRETRAIN
from bertie.errors import SpecError
from bertie.train.finetuning import FinetuneOptions


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"adamw": {"kind": "adamw", "rate": -1}}, "--lr: input should be greater than 0"),
        ({"adamw": {"kind": "adamw", "decay": -1}}, "--weight-decay: input should be"),
        ({"schedule": {"kind": "linear", "warmup": 3}}, "--warmup: input should be less than or equal to 1"),
        ({"adversary": {"kind": "fgm", "epsilon": -1}}, "--epsilon: input should be"),
        ({"keep": 0}, "^bertie finetune: keep: input"),
    ],
)
def test_a_wrong_value_is_told_with_its_flag(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told), told_by_flags(OF_FINETUNE):
        FinetuneOptions.of_epochs([10], 1, 8, fields)


def test_fields_of_one_name_have_one_flag() -> None:
    assert all(OF_FINETUNE[field] == flag for field, flag in OF_PRETRAIN.items() if field in OF_FINETUNE)
