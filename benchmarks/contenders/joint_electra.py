"""ELECTRA's training as users of `transformers` write it, which has the two models but not the loss that joins them."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import ElectraForMaskedLM, ElectraForPreTraining

IGNORED = -100
WEIGHT = 50.0  # of the detector's loss


class JointElectra(nn.Module):
    """The generator fills the gaps, the discriminator finds what it filled. Tables are shared."""

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining):
        super().__init__()
        self.generator, self.discriminator, self.config = generator, discriminator, discriminator.config
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight

    @classmethod
    def from_pretrained(cls, folder: str) -> "JointElectra":
        generator = ElectraForMaskedLM.from_pretrained(Path(folder) / "generator")
        return cls(generator, ElectraForPreTraining.from_pretrained(folder))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor, drawn: Tensor | None = None
    ) -> dict[str, Tensor]:
        """`labels` are the tokens at the gaps, and IGNORED elsewhere. `drawn` [P] takes the place of chance."""
        masked = labels != IGNORED
        logits = self.generator(input_ids=input_ids, attention_mask=attention_mask).logits[masked]  # [P, V]
        if drawn is None:
            drawn = torch.multinomial(logits.detach().softmax(-1), 1).squeeze(-1)
        original = torch.where(masked, labels, input_ids)
        written = original.masked_scatter(masked, drawn)
        replaced = (written != original).long()
        detected = self.discriminator(input_ids=written, attention_mask=attention_mask, labels=replaced)
        return {"loss": F.cross_entropy(logits, labels[masked]) + WEIGHT * detected.loss}
