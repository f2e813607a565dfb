"""Output heads against their formulas."""

import torch
import torch.nn.functional as F

from bertie.nn.heads import Classifier, VocabularyHead


def test_vocabulary_head_is_transform_norm_and_product_with_the_table() -> None:
    head = VocabularyHead(6, 11, F.gelu, norm_eps=1e-12, tied=False)
    torch.nn.init.normal_(head.bias)
    states = torch.randn(4, 6)
    hidden = F.layer_norm(F.gelu(states @ head.dense.weight.T + head.dense.bias), (6,), eps=1e-12)
    torch.testing.assert_close(head(states), hidden @ head.weight.T + head.bias)


def test_a_tied_head_has_no_table_of_its_own() -> None:
    head = VocabularyHead(6, 11, F.gelu, norm_eps=1e-12, tied=True)
    assert "weight" not in dict(head.named_parameters())


def test_classifier() -> None:
    head, states = Classifier(6, 3), torch.randn(4, 6)
    torch.testing.assert_close(head(states), states @ head.output.weight.T + head.output.bias)
