"""bertie: the BERT family, whole: from raw text to a served encoder, on the machine you have."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertie.models.pretrained import Pretrained, load

__version__ = "0.1.0.dev0"
__all__ = ["Pretrained", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """torch takes seconds to import: it is imported when first used, so that `bertie --help` is quick."""
    if name in ("Pretrained", "load"):
        from bertie.models import pretrained

        return getattr(pretrained, name)
    raise AttributeError(f"module 'bertie' has no attribute {name!r}")
