"""A corpus folder with the tokenizer that made it: the folder's own, or the one named on the command line."""

from pathlib import Path

from bertie.data.corpus import Corpus
from bertie.errors import TokenizerError
from bertie.text.tokenizer import Tokenizer, load_tokenizer


def open_corpus(folder: Path, tokenizer: Path | None) -> tuple[Corpus, Tokenizer]:
    Corpus.open(folder)  # what is wrong with the folder is told before what is wrong with the tokenizer
    beside = folder / "tokenizer"
    found = load_tokenizer(tokenizer or (beside if beside.is_dir() else folder))
    if found is None:
        hint = "name the folder of the tokenizer that the corpus was built with: --tokenizer VOCAB"
        raise TokenizerError("there is no tokenizer", where=str(tokenizer or folder), hint=hint)
    return Corpus.open(folder, found), found
