"""What a bare runtime needs around it: texts enter, padded batches in order of length leave, and states become vectors.

Written to cost next to nothing: the runtime's time should be the runtime's own.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from tokenizers import Tokenizer

from benchmarks.contenders.minilm import FOLDER, LIMIT


class PaddedBatches:
    def __init__(self) -> None:
        self.tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        self.tokenizer.enable_truncation(LIMIT)
        self.tokenizer.no_padding()

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(encoding) for encoding in self.tokenizer.encode_batch_fast(list(texts))])

    def batches(self, texts: Sequence[str], batch_size: int) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Row numbers, and ids and mask [B, L], padded to the longest of the batch."""
        rows_of_ids = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts))]
        lengths = np.array([len(ids) for ids in rows_of_ids])
        order = np.argsort(-lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            mask = np.arange(lengths[rows[0]]) < lengths[rows][:, None]
            ids = np.zeros(mask.shape, np.int64)
            ids[mask] = np.concatenate([rows_of_ids[row] for row in rows])
            yield rows, {"input_ids": ids, "attention_mask": mask.astype(np.int64)}


def pool(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Mean over the tokens of a row, then unit length: [B, L, H], [B, L] -> [B, H]."""
    weights = mask.astype(np.float32)[:, None]  # [B, 1, L]
    sums = (weights @ states)[:, 0]
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)  # the mean's divisor cancels
