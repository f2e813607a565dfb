from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus
from bertie.data.build.sweeping import next_layer, sweep
from bertie.data.corpus import Corpus
from bertie.errors import InputError, UserError
from bertie.text.tokenizers.tokenizer import Tokenizer


def numbered_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("shard-", "signatures-")))


def test_only_what_no_manifest_names_is_swept(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be."])], tokenizer)
    named = numbered_files(target)
    left = ("shard-07-000000-000000.arrow", "signatures-06-near-documents.npy", "shard-00-000001-000000.arrow.12.part")
    for name in (*left, "notes.txt"):
        (target / name).touch()
    assert next_layer(target) == 8
    sweep(target)
    assert numbered_files(target) == named and (target / "notes.txt").exists()
    assert next_layer(target) == 1


@pytest.mark.parametrize("options", [BuildOptions(), BuildOptions(duplicates=False, near_duplicates=False)])
def test_a_restart_after_add_leaves_nothing_of_the_old_corpus(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], options: BuildOptions
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be.", "bi bo."])], tokenizer)
    add_to_corpus(target, [write_documents(["da de."], "more.jsonl")], tokenizer)
    manifest = build_corpus(target, [write_documents(["fa fe."])], tokenizer, options, restart=True).manifest
    assert numbered_files(target) == sorted(entry.name for entry in (*manifest.shards, *manifest.signatures))
    assert Corpus.open(target).num_documents == 1 and not any(faults for _, faults in Corpus.open(target).verify())
    add_to_corpus(target, [write_documents(["ga ge."], "third.jsonl")], tokenizer)
    assert Corpus.open(target).num_documents == 2 and not any(faults for _, faults in Corpus.open(target).verify())


@pytest.mark.parametrize("options", [BuildOptions(), BuildOptions(duplicates=False, paragraphs="off")])
def test_a_restart_whose_input_cannot_be_read_leaves_the_corpus_as_it_was(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], options: BuildOptions
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be.", "bi bo."])], tokenizer)
    before = {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()}
    (tmp_path / "latin.txt").write_bytes(b"ba be.\n\ncaf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8"):
        build_corpus(target, [tmp_path / "latin.txt"], tokenizer, options, restart=True)
    assert {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()} == before


def test_restarting_an_add_forgets_the_add_and_not_the_corpus(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    build_corpus(tmp_path / "c", [write_documents(["ba be.", "bi bo."])], tokenizer)
    add_to_corpus(tmp_path / "c", [write_documents(["da de."], "more.jsonl")], tokenizer, restart=True)
    assert Corpus.open(tmp_path / "c").num_documents == 3


def test_a_corpus_of_an_unknown_version_can_be_built_anew(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    source = write_documents(["ba be."])
    build_corpus(tmp_path / "c", [source], tokenizer)
    (tmp_path / "c" / "manifest.json").write_text('{"version": 0}')
    manifest = build_corpus(tmp_path / "c", [source], tokenizer, restart=True).manifest
    assert numbered_files(tmp_path / "c") == sorted(entry.name for entry in (*manifest.shards, *manifest.signatures))


FOREIGN = (
    "shard-00000-of-00002.jsonl",
    "shard-00001-of-00002.arrow",
    "shard-1-notes.arrow",
    "signatures-2024-letters.pdf",
    "signatures-00-old.npy",
    "video.mkv.part",
    "model.bin.7.part",
)


def test_a_folder_of_other_things_is_refused_and_left_alone(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    source = write_documents(["ba be."], "shard-00000-of-00002.jsonl")
    for name in FOREIGN[1:]:
        (tmp_path / name).write_text(name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    for restart in (False, True):
        with pytest.raises(UserError, match="do not belong to a corpus; name a folder that is new or empty"):
            build_corpus(tmp_path, [source], tokenizer, restart=restart)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", ["tokenizer/notes.md", "manifest.json", ".build/workspace.json"])
def test_names_that_others_use_too_make_no_corpus(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], name: str
) -> None:
    path = tmp_path / "site" / name
    path.parent.mkdir(parents=True)
    path.write_text('{"manifest_version": 3, "version": "1.0"}')
    with pytest.raises(UserError, match="do not belong to a corpus"):
        build_corpus(tmp_path / "site", [write_documents(["ba be."])], tokenizer, restart=True)
    assert [one for one in (tmp_path / "site").rglob("*") if one.is_file()] == [path]


def test_what_the_user_puts_into_a_corpus_folder_outlives_add_and_restart(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    target = tmp_path / "c"
    build_corpus(target, [write_documents(["ba be."])], tokenizer)
    for name in (*FOREIGN, "tokenizer/notes.md"):
        (target / name).write_text(name)
    (target / "shard-09-000000-000000.arrow").mkdir()
    add_to_corpus(target, [write_documents(["da de."], "more.jsonl")], tokenizer)
    build_corpus(target, [write_documents(["fa fe."])], tokenizer, restart=True)
    assert all((target / name).read_text() == name for name in (*FOREIGN, "tokenizer/notes.md"))


def test_what_a_killed_build_left_is_no_foreign_thing(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    target = tmp_path / "c"
    (target / ".build").mkdir(parents=True)
    for name in ("shard-00-000000-000000.arrow", "shard-00-000001-000000.arrow.12.part", "manifest.json.12.part"):
        (target / name).touch()
    manifest = build_corpus(target, [write_documents(["ba be."])], tokenizer).manifest
    entries = (*manifest.shards, *manifest.signatures)
    assert {path.name for path in target.iterdir()} == {entry.name for entry in entries} | {
        "manifest.json",
        "tokenizer",
    }
