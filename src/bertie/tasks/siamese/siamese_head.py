"""The head of a siamese encoder: turns pooled vectors into final vectors, and pairs of vectors into label logits."""

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.devices import CPU
from bertie.nn.pooling import ACTIVATIONS, Activation, Projection
from bertie.nn.products import Linear
from bertie.spec import Spec
from bertie.tasks.siamese.vector_losses import relation


class DenseSpec(Spec):
    """A layer from a row's pooled vector to its final one."""

    size: int = Field(ge=1)
    bias: bool = True
    activation: Activation = "identity"

    @classmethod
    def of(cls, layer: Projection) -> "DenseSpec":
        return cls(size=len(layer.weight), bias=layer.bias is not None, activation=layer.activation)


class SiameseHead(nn.Module):
    """What a siamese task owns: a dense layer behind the pooling, and a layer that predicts labels; either may be
    missing."""

    def __init__(self, width: int, dense: DenseSpec | None, num_labels: int):
        super().__init__()
        self.activation: Activation = "identity" if dense is None else dense.activation
        self.dense = None if dense is None else Linear(width, dense.size, bias=dense.bias)
        self.labels = Linear(3 * (dense.size if dense else width), num_labels) if num_labels else None

    def vectors(self, pooled: Tensor) -> Tensor:
        return pooled if self.dense is None else ACTIVATIONS[self.activation](self.dense(pooled))

    def logits(self, text: Tensor, other: Tensor) -> Tensor:
        assert self.labels is not None
        found: Tensor = self.labels(relation(text, other))
        return found

    @property
    def projection(self) -> Projection | None:
        """The dense layer, as it is saved with a pooling."""
        if self.dense is None:
            return None
        bias = None if self.dense.bias is None else self.dense.bias.detach().to(CPU, copy=True)
        return Projection(self.dense.weight.detach().to(CPU, copy=True), bias, self.activation)

    @torch.no_grad()
    def load_dense(self, projection: Projection) -> None:
        assert self.dense is not None
        self.dense.weight.copy_(projection.weight)
        if projection.bias is not None:
            self.dense.bias.copy_(projection.bias)
