"""A corpus folder with the tokenizer that made it: the folder's own, or the one named on the command line."""

from pathlib import Path

from bertie.data.corpus import Corpus
from bertie.data.frozen_corpus import FrozenCorpus, is_frozen
from bertie.errors import TokenizerError
from bertie.text.tokenizer import Tokenizer, load_tokenizer


def open_corpus(folder: Path, tokenizer: Path | None) -> tuple[Corpus, Tokenizer]:
    Corpus.open(folder)  # what is wrong with the folder is told before what is wrong with the tokenizer
    found = find_tokenizer(folder, tokenizer)
    return Corpus.open(folder, found), found


def open_training_corpus(folder: Path, tokenizer: Path | None) -> tuple[Corpus | FrozenCorpus, Tokenizer]:
    """Also of samples that were masked once and for all."""
    if is_frozen(folder):
        return FrozenCorpus(folder), find_tokenizer(folder, tokenizer)
    return open_corpus(folder, tokenizer)


def find_tokenizer(folder: Path, tokenizer: Path | None) -> Tokenizer:
    beside = folder / "tokenizer"
    found = load_tokenizer(tokenizer or (beside if beside.is_dir() else folder))
    if found is None:
        hint = "name the folder of the tokenizer that the corpus was built with: --tokenizer VOCAB"
        raise TokenizerError("there is no tokenizer", where=str(tokenizer or folder), hint=hint)
    return found
