"""all-MiniLM-L6-v2 as ONNX: the packaged model enters, two files leave: as exported, and fused for ONNX Runtime.

They are kept inside the environment that made them and are named after the versions that did.
"""

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.contenders.minilm import FOLDER, NUM_HEADS, PACKAGE, WIDTH

OPSET = 17


def onnx_files() -> tuple[Path, Path]:
    """(as exported, fused). Inputs `input_ids` and `attention_mask` [B, L], output `states` [B, L, H]."""
    key = " ".join(f"{name} {version(name)}" for name in (PACKAGE, "torch", "transformers", "onnxruntime"))
    folder = Path(sys.prefix) / "models" / hashlib.sha256(f"{OPSET} {key}".encode()).hexdigest()[:12]
    plain, fused = folder / "plain.onnx", folder / "fused.onnx"
    if not fused.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _export(plain)
        _fuse(plain, fused)
    return plain, fused


def _export(file: Path) -> None:
    import torch
    from transformers import AutoModel

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = AutoModel.from_pretrained(FOLDER, attn_implementation="eager", add_pooling_layer=False)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            segments = torch.zeros_like(input_ids)
            states: torch.Tensor = self.model(input_ids, attention_mask, token_type_ids=segments).last_hidden_state
            return states

    names = ["input_ids", "attention_mask"]
    ids = torch.arange(5, 5 + 33).view(3, 11)
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0  # so that the mask is traced and not optimised away
    torch.onnx.export(
        States().eval(),
        (ids, mask),
        str(file),
        input_names=names,
        output_names=["states"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in [*names, "states"]},
        opset_version=OPSET,
        dynamo=False,
    )


def _fuse(plain: Path, fused: Path) -> None:
    """Attention, GELU and LayerNorm as single operators."""
    from onnxruntime.transformers import optimizer

    model = optimizer.optimize_model(str(plain), model_type="bert", num_heads=NUM_HEADS, hidden_size=WIDTH, opt_level=0)
    if not model.get_fused_operator_statistics()["Attention"]:
        raise RuntimeError("ONNX Runtime did not fuse the attention of the exported model: it would not be at its best")
    unfinished = fused.with_suffix(".unfinished")
    model.save_model_to_file(str(unfinished))
    unfinished.replace(fused)
