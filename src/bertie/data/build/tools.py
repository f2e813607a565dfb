"""Keeps what cuts the text of a corpus (tokenizer, segmenter with its dictionary, sentence splitter): their names in
the manifest, and a copy in the corpus folder, so that a later `add` needs no path; it is refused where any has
changed."""

import shutil
from pathlib import Path

from bertie.data.build.build_options import BuildOptions
from bertie.data.corpus import check_files
from bertie.data.duplicates import SIGNATURES
from bertie.data.manifest import FileEntry, Manifest, entry_of
from bertie.disk import sync_folder
from bertie.errors import FolderError
from bertie.text import sentences
from bertie.text.segmenters import load_segmenter
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.tokenizer_files import FILES as TOKENIZER_FILES

FOLDER = "tokenizer"
DICTIONARY = f"{FOLDER}/dictionary.txt"


def tools_of(options: BuildOptions) -> dict[str, str]:
    segmenter = load_segmenter(options.segmenter, options.dictionary)
    name = "none" if segmenter is None else f"{segmenter.name} {segmenter.version} {segmenter.digest}"
    splitter = f"{sentences.NAME} {sentences.VERSION}" if options.sentences else "none"
    signatures = SIGNATURES if options.compares_near else "none"
    return {"segmenter": name, "sentences": splitter, "near duplicates": signatures}


def save_tools(folder: Path, tokenizer: Tokenizer, options: BuildOptions) -> None:
    """Copies that the workers use. They lie in the build's own folder until `move_tools`."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    tokenizer.save(folder / FOLDER)
    if options.dictionary:
        shutil.copyfile(options.dictionary, folder / DICTIONARY)


def move_tools(build: Path, corpus: Path) -> list[FileEntry]:
    """File by file: what else the user keeps beside them stays, but nothing that could be read in their place."""
    target = corpus / FOLDER
    target.mkdir(exist_ok=True)
    made = sorted((build / FOLDER).iterdir())
    entries = [entry_of(path, f"{FOLDER}/{path.name}") for path in made]
    for name in {*TOKENIZER_FILES, Path(DICTIONARY).name} - {path.name for path in made}:
        (target / name).unlink(missing_ok=True)
    for path in made:
        path.replace(target / path.name)
    sync_folder(target)
    return entries


def with_copy(options: BuildOptions, folder: Path) -> BuildOptions:
    """The options with the dictionary that was copied into the folder, where one was."""
    return options.replace(dictionary=folder / DICTIONARY) if (folder / DICTIONARY).exists() else options


def check_tools(manifest: Manifest, tools: dict[str, str], folder: Path) -> None:
    """Refuses to add what would be cut differently from the rest of the corpus."""
    check_files(folder, manifest.tool_files)
    others = [
        f"{name} was {was!r} and is now {tools.get(name)!r}"
        for name, was in manifest.tools.items()
        if tools.get(name) != was
    ]
    if others:
        hint = "install the versions that made the corpus, or build it again with these"
        raise FolderError(f"the corpus was made with other tools: {'; '.join(others)}", where=str(folder), hint=hint)
