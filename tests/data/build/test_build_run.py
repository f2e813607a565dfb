import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.data.build import BuildOptions, add_to_corpus, build_corpus, spilling
from bertie.data.corpus import Corpus
from bertie.errors import FolderError, UserError
from bertie.reporting.events import Event
from bertie.text.reading.documents import DocumentOptions, Texts
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer

SMALL_SLICES = DocumentOptions(slice_bytes=4000)
NO_SEARCH = BuildOptions(duplicates=False, near_duplicates=False, paragraphs="off")


def shard_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("shard-*"))}


def names_of(folder: Path) -> list[str]:
    return [document.name for document in Corpus.open(folder)]


def test_the_shards_are_the_same_for_any_number_of_workers(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    texts = random_documents(0, 60)
    source = write_documents(texts + texts[:5])
    found = {}
    for workers in (1, 2, 4):
        report = build_corpus(tmp_path / str(workers), [source], tokenizer, reading=SMALL_SLICES, num_workers=workers)
        assert report.manifest.dropped == {"duplicate documents": 5}
        found[workers] = (
            shard_bytes(tmp_path / str(workers)),
            (tmp_path / str(workers) / "manifest.json").read_bytes(),
        )
    assert len(found[1][0]) > 4
    assert found[1] == found[2] == found[4]


def test_nothing_of_the_work_is_left_behind(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    build_corpus(tmp_path / "corpus", [write_documents(random_documents(0, 5))], tokenizer)
    left = sorted(path.name.split("-")[0] for path in (tmp_path / "corpus").iterdir())
    assert set(left) == {"manifest.json", "shard", "signatures", "tokenizer"}
    kept = load_tokenizer(tmp_path / "corpus" / "tokenizer")
    assert kept is not None and kept.digest == tokenizer.digest


def test_the_manifest_tells_what_was_read_and_left_out(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    texts = random_documents(0, 10)
    lines = [line for text in texts for line in text.split("\n")]
    repeated = f"{random_documents(1, 1)[0]}\n{lines[0]}"
    manifest = build_corpus(tmp_path / "c", [write_documents([*texts, "", texts[3], repeated])], tokenizer).manifest
    assert manifest.counts["documents read"] == 13 and manifest.num_documents == 11
    assert manifest.dropped == {
        "duplicate documents": 1,
        "duplicate paragraphs": 1,
        "empty or short documents": 1,
    }
    assert manifest.tokenizer.digest == tokenizer.digest
    assert manifest.tools["segmenter"].startswith("rjieba ") and manifest.tools["sentences"].startswith("sentencex ")
    assert manifest.counts["bytes read"] == sum(len(text.encode()) for text in [*texts, texts[3], repeated])
    assert manifest.layers[0].options["language"] == "auto"


def test_without_a_search_all_copies_stay(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    texts = random_documents(0, 4)
    report = build_corpus(tmp_path / "c", [write_documents(texts * 2)], tokenizer, NO_SEARCH)
    assert report.manifest.num_documents == 8 and report.manifest.dropped == {} and report.manifest.signatures == ()


def test_near_copies_of_paragraphs_go_when_asked(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    change_words: Callable[[str, float, int], str],
) -> None:
    texts = random_documents(0, 6, num_words=80)
    lines = [line for text in texts for line in text.split("\n")]
    mixed = "\n".join([random_documents(9, 1)[0], change_words(lines[0], 0.03, 1)])
    for level, dropped in (("exact", {}), ("near", {"near-duplicate paragraphs": 1})):
        options = BuildOptions().replace(paragraphs=level)
        report = build_corpus(tmp_path / level, [write_documents([*texts, mixed])], tokenizer, options)
        assert report.manifest.dropped == dropped


def test_a_thousand_near_copies_are_found_and_honest_documents_stay(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    change_words: Callable[[str, float, int], str],
) -> None:
    honest = random_documents(0, 1500, num_words=200)
    # A tenth of the words changed makes an honest document, too.
    honest += [change_words(text, 0.1, number) for number, text in enumerate(honest[:100])]
    copies = [change_words(text, 0.05, number) for number, text in enumerate(honest[:1000])]
    source = write_documents(honest, "a-honest.jsonl"), write_documents(copies, "b-copies.jsonl")
    build_corpus(tmp_path / "c", source, tokenizer, BuildOptions(paragraphs="off", sentences=False), num_workers=2)
    stayed = [name.split()[0] for name in names_of(tmp_path / "c")]
    assert stayed.count("b-copies.jsonl") <= 50
    assert len(honest) - stayed.count("a-honest.jsonl") <= len(honest) // 1000


def test_add_appends_and_leaves_out_what_is_there(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    change_words: Callable[[str, float, int], str],
) -> None:
    texts, more = random_documents(0, 20, num_words=200), random_documents(1, 3)
    target = tmp_path / "c"
    build_corpus(target, [write_documents(texts, "first.jsonl")], tokenizer)
    before = shard_bytes(target)
    line = texts[7].split("\n")[0]
    second = [texts[4], *more, change_words(texts[5], 0.03, 0), f"{random_documents(2, 1)[0]}\n{line}"]
    report = add_to_corpus(target, [write_documents(second, "second.jsonl")], tokenizer)
    assert report.manifest.layers[1].dropped == {
        "duplicate documents": 1,
        "duplicate paragraphs": 1,
        "near-duplicate documents": 1,
    }
    assert names_of(target)[20:] == [f"second.jsonl {number}" for number in (1, 2, 3, 5)]
    assert {name: content for name, content in shard_bytes(target).items() if name in before} == before
    third = add_to_corpus(target, [write_documents([more[1], *random_documents(3, 2)], "third.jsonl")], tokenizer)
    assert third.manifest.num_documents == 26 and third.manifest.layers[2].dropped == {"duplicate documents": 1}
    assert all(not faults for _, faults in Corpus.open(target, tokenizer).verify())


def test_what_add_needs_is_left_out_where_it_has_no_room(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertie.data.build.build_run.SMALL", 0)
    monkeypatch.setattr("bertie.data.build.build_run.DISK_SHARE", 0.1)
    texts = random_documents(0, 10)
    manifest = build_corpus(tmp_path / "c", [write_documents(texts)], tokenizer).manifest
    assert manifest.counts["bytes of near signatures not kept"] > 0
    assert [entry.name for entry in manifest.signatures] == [
        "signatures-00-documents.u64",
        "signatures-00-paragraphs.u64",
    ]
    report = add_to_corpus(tmp_path / "c", [write_documents(texts[:2], "again.jsonl")], tokenizer)
    assert report.manifest.layers[1].dropped == {"duplicate documents": 2}


def test_a_finished_corpus_is_not_overwritten_unless_asked(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    first, second = (
        write_documents(random_documents(0, 4), "a.jsonl"),
        write_documents(random_documents(1, 3), "b.jsonl"),
    )
    build_corpus(tmp_path / "c", [first], tokenizer)
    with pytest.raises(UserError, match="finished corpus"):
        build_corpus(tmp_path / "c", [second], tokenizer)
    assert Corpus.open(tmp_path / "c").num_documents == 4
    report = build_corpus(tmp_path / "c", [second], tokenizer, restart=True)
    assert report.manifest.num_documents == 3 and len(report.manifest.layers) == 1


def test_add_refuses_another_tokenizer(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
) -> None:
    source = write_documents(random_documents(0, 2))
    build_corpus(tmp_path / "c", [source], tokenizer)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    other = load_tokenizer(tmp_path / "vocab.txt")
    assert other is not None
    with pytest.raises(FolderError, match=tokenizer.digest):
        add_to_corpus(tmp_path / "c", [source], other)


def test_the_ranges_of_the_search_do_not_change_the_shards(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    change_words: Callable[[str, float, int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = random_documents(0, 30, num_words=120)
    texts += [*texts[:3], *(change_words(text, 0.04, 1) for text in texts[5:9])]
    source = write_documents(texts)
    options = BuildOptions(paragraphs="near")
    first = build_corpus(tmp_path / "a", [source], tokenizer, options, reading=SMALL_SLICES).manifest
    monkeypatch.setattr(spilling, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(spilling, "FAN_OUT", 4)
    second = build_corpus(tmp_path / "b", [source], tokenizer, options, reading=SMALL_SLICES).manifest
    assert (
        first == second and first.dropped["duplicate documents"] == 3 and first.dropped["near-duplicate documents"] == 4
    )


def test_what_is_kept_for_add_fits_into_the_disk_that_is_allowed(
    tmp_path: Path,
    tokenizer: Tokenizer,
    write_documents: Callable[..., Path],
    random_documents: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertie.data.build.build_run.SMALL", 0)
    report = build_corpus(tmp_path / "c", [write_documents(random_documents(0, 300, 200))], tokenizer)
    used = sum(path.stat().st_size for path in (tmp_path / "c").glob("s*"))
    assert used <= 1.1 * report.manifest.counts["bytes read"]


def test_a_restart_with_input_that_cannot_be_read_costs_nothing(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path]
) -> None:
    build_corpus(tmp_path / "c", [write_documents(["the cat sat"])], tokenizer)
    with pytest.raises(UserError, match="missing"):
        build_corpus(tmp_path / "c", [tmp_path / "missing.txt"], tokenizer, restart=True)
    assert Corpus.open(tmp_path / "c").num_documents == 1


@pytest.mark.parametrize(("kind", "fault"), [("shard", "bytes"), ("signatures", "bytes"), ("shard", "is missing")])
def test_nothing_is_added_to_a_corpus_with_a_cut_or_missing_file(
    tmp_path: Path, tokenizer: Tokenizer, write_documents: Callable[..., Path], kind: str, fault: str
) -> None:
    build_corpus(tmp_path / "c", [write_documents(["ba be.", "bi bo."])], tokenizer)
    path = min((tmp_path / "c").glob(f"{kind}-*"))
    content = path.read_bytes()
    path.unlink()
    if fault == "bytes":
        path.write_bytes(content[:-1])
    before = (tmp_path / "c" / "manifest.json").read_bytes()
    with pytest.raises(FolderError, match=rf"{path.name} .*{fault}.*restore it from a copy"):
        add_to_corpus(tmp_path / "c", [write_documents(["da de."], "more.jsonl")], tokenizer)
    assert (tmp_path / "c" / "manifest.json").read_bytes() == before and not (tmp_path / "c" / ".build").exists()


def test_texts_in_memory_give_the_shards_of_a_file_with_them(
    tmp_path: Path, tokenizer: Tokenizer, random_documents: Callable[..., list[str]]
) -> None:
    texts = random_documents(0, 30)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    build_corpus(tmp_path / "file", [tmp_path / "texts.jsonl"], tokenizer, reading=SMALL_SLICES)
    for workers in (1, 2):
        folder = tmp_path / f"memory-{workers}"
        events: list[Event] = []
        report = build_corpus(
            folder, Texts(iter(texts)), tokenizer, reading=SMALL_SLICES, num_workers=workers, on_event=events.append
        )
        ids = [[document.ids.tolist() for document in Corpus.open(tmp_path / name)] for name in ("file", folder.name)]
        assert ids[0] == ids[1]
        assert names_of(folder)[0] == "texts:1"
        assert report.manifest.layers[0].sources == ("texts",)
        assert events[-1].data["fraction"] == 1.0 and events[-1].data["stage"] == "tokenizing"
        assert not (folder / ".build").exists()
    add_to_corpus(folder, Texts(["Something new to read."]), tokenizer)
    assert len(names_of(folder)) == len(texts) + 1


def test_a_build_from_memory_continues_with_the_same_texts_only(
    tmp_path: Path, tokenizer: Tokenizer, random_documents: Callable[..., list[str]]
) -> None:
    texts = random_documents(0, 30)

    def stop(event: Event) -> None:
        if event.data.get("stage") == "tokenizing" and event.data["fraction"] > 0.3:
            raise KeyboardInterrupt

    folder = tmp_path / "corpus"
    with pytest.raises(KeyboardInterrupt):
        build_corpus(folder, Texts(texts), tokenizer, reading=SMALL_SLICES, on_event=stop)
    with pytest.raises(UserError, match="the file texts was"):
        build_corpus(folder, Texts(texts[1:]), tokenizer, reading=SMALL_SLICES)
    assert build_corpus(folder, Texts(iter(texts)), tokenizer, reading=SMALL_SLICES).resumed["tokens"]
    assert len(names_of(folder)) == len(texts)
