"""bertie: the BERT family, whole: from raw text to a served encoder, on the machine you have."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bertie.jobs.api import evaluate, finetune, predict, pretrain
    from bertie.jobs.embed import embed
    from bertie.jobs.loaded_model import LoadedModel, load
    from bertie.jobs.text.corpus_jobs import add_to_corpus, build_corpus
    from bertie.jobs.text.vocab import extend_vocab, train_vocab
    from bertie.jobs.whiten import whiten
    from bertie.reporting.events import Event

__version__ = "0.1.0.dev0"
__all__ = [
    "Event",
    "LoadedModel",
    "__version__",
    "add_to_corpus",
    "build_corpus",
    "embed",
    "evaluate",
    "extend_vocab",
    "finetune",
    "load",
    "predict",
    "pretrain",
    "train_vocab",
    "whiten",
]

_MODULES = {
    "Event": "reporting.events",
    "LoadedModel": "jobs.loaded_model",
    "add_to_corpus": "jobs.text.corpus_jobs",
    "build_corpus": "jobs.text.corpus_jobs",
    "embed": "jobs.embed",
    "evaluate": "jobs.api",
    "extend_vocab": "jobs.text.vocab",
    "finetune": "jobs.api",
    "load": "jobs.loaded_model",
    "predict": "jobs.api",
    "pretrain": "jobs.api",
    "train_vocab": "jobs.text.vocab",
    "whiten": "jobs.whiten",
}


if not TYPE_CHECKING:  # so that type checkers know every name, and only these

    def __getattr__(name: str) -> Any:
        """Imports on first use: torch takes seconds to import, and `bertie --help` needs none of it."""
        if name not in _MODULES:
            raise AttributeError(f"module 'bertie' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"bertie.{_MODULES[name]}"), name)
