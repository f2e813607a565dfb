"""One changed byte in each try, over all kinds of files: the command refuses, or its result is the same.

"announced": the result may be another one, but a warning names the file. "recovered": an older checkpoint was used.
"""

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.trying import Ran, Tally, run
from tests.faults.workplace import Workplace, as_json, copy

FAULT = "changed byte"


@dataclass(frozen=True)
class Kind:
    """Files of one kind. `act` runs a command on a copy of the folder and returns it with what decides its result."""

    component: str
    folder: Path
    files: tuple[str, ...]
    act: Callable[[Path], tuple[Ran, object]]
    share: int  # of the tries
    must_refuse: bool = False


def kinds(place: Workplace, work: Path) -> list[Kind]:
    """The table. Shares add up to 100."""

    def printing(*words: object) -> Callable[[Path], tuple[Ran, object]]:
        """A command whose result is what it prints; None among its words is the folder."""

        def act(folder: Path) -> tuple[Ran, object]:
            ran = run(*(folder if word is None else word for word in words))
            return ran, as_json(ran.stdout.replace(str(folder), ""))

        return act

    def learning(corpus: Path) -> tuple[Ran, object]:
        out = work / "learned"
        shutil.rmtree(out, ignore_errors=True)
        ran = run(*place.pretrain(out, corpus, steps=2))
        return ran, weights(out)

    def continuing(out: Path) -> tuple[Ran, object]:
        return run(*place.pretrain(out)), weights(out)

    def continuing_task(out: Path) -> tuple[Ran, object]:
        return run(*place.finetune(out)), weights(out)

    def embedding(folder: Path) -> tuple[Ran, object]:
        ran = run("embed", place.model, place.lines, "--max-length", 16, "--out", folder / "v.npy")
        return ran, (folder / "v.npy").read_bytes() if (folder / "v.npy").exists() else b""

    def building(folder: Path) -> tuple[Ran, object]:
        ran = run("corpus", "build", place.texts, "--tokenizer", place.vocab, "--workers", 1, "--out", folder)
        names = ("manifest.json", "shard-*")
        return ran, [path.read_bytes() for name in names for path in sorted(folder.glob(name))]

    stopped, task_stopped = stop_run(place, work), stop_task(place, work)
    vectors = stop_embed(place, work)
    verify = printing("corpus", "verify", None, "--json")
    vector = printing("fill", None, f"{place.lines.read_text().split()[0]} [MASK]", "--json")
    answer = printing("predict", None, place.lines.read_text().splitlines()[0], "--json")
    return [
        Kind("unfinished corpus build", stop_build(place, work), (".build/*", ".build/*/*"), building, 4),
        Kind("corpus, verify", place.corpus, ("*", "tokenizer/*"), verify, 21, must_refuse=True),
        Kind("corpus shards, pretrain", place.corpus, ("*.arrow",), learning, 8, must_refuse=True),
        Kind("corpus manifest, pretrain", place.corpus, ("manifest.json",), learning, 3, must_refuse=True),
        Kind("corpus tokenizer, pretrain", place.corpus, ("tokenizer/*",), learning, 2, must_refuse=True),
        Kind("corpus shards, report", place.corpus, ("*.arrow",), printing("corpus", "report", None, "--json"), 4),
        Kind("corpus shards, show", place.corpus, ("*.arrow",), printing("corpus", "show", None, 3, "--json"), 4),
        Kind("frozen corpus, verify", place.frozen, ("*", "tokenizer/*"), verify, 4, must_refuse=True),
        Kind("frozen corpus, pretrain", place.frozen, ("*", "tokenizer/*"), learning, 4, must_refuse=True),
        Kind("checkpoints", stopped, ("checkpoints/*/*",), continuing, 8),
        Kind("options.json of a run", stopped, ("options.json",), continuing, 3),
        Kind("log of a run", stopped, ("log.jsonl",), continuing, 3),
        Kind("checkpoints of a task", task_stopped, ("checkpoints/*/*",), continuing_task, 3),
        Kind("model.safetensors", place.model, ("model.safetensors",), vector, 6),
        Kind("config.json", place.model, ("config.json",), vector, 4),
        Kind("tokenizer.json", place.model, ("tokenizer*.json", "vocab.txt"), vector, 4),
        Kind("bertie.json", place.model, ("bertie.json",), vector, 4),
        Kind("task model", place.task, ("*",), answer, 7),
        Kind("vectors of an unfinished embed", vectors, ("v.npy.*",), embedding, 4),
    ]


def weights(out: Path) -> bytes:
    path = out / "model" / "model.safetensors"
    return path.read_bytes() if path.exists() else b""


def stop_run(place: Workplace, work: Path) -> Path:
    """A run that was stopped after its second checkpoint."""
    out = work / "stopped"
    run(*place.pretrain(out), before=lambda: die_at_step(5))
    assert len(list((out / "checkpoints").iterdir())) == 2
    return out


def stop_task(place: Workplace, work: Path) -> Path:
    out = work / "stopped-task"
    run(*place.finetune(out), before=lambda: die_at_step(4))
    assert (out / "checkpoints").is_dir()
    return out


def stop_build(place: Workplace, work: Path) -> Path:
    """Before its manifest is written."""
    out = work / "stopped-build"
    words = ["corpus", "build", place.texts, "--tokenizer", place.vocab, "--workers", 1, "--out", out]
    run(*words, before=die_before_the_manifest)
    assert (out / ".build" / "journal.jsonl").exists()
    return out


def stop_embed(place: Workplace, work: Path) -> Path:
    out = work / "stopped-embed"
    out.mkdir()
    run("embed", place.model, place.lines, "--max-length", 16, "--out", out / "v.npy", before=die_while_embedding)
    assert (out / "v.npy.journal").exists()
    return out


def die_at_step(number: int) -> None:
    from bertie.train.folder.log import Log

    real = Log.write

    def write(self: Log, record: dict[str, object]) -> None:
        real(self, record)
        if record.get("event") == "step" and record.get("step") == number:
            import os

            os._exit(1)

    Log.write = write  # type: ignore[method-assign, assignment]


def die_before_the_manifest() -> None:
    import os

    from bertie.data.manifest import Manifest

    Manifest.write = lambda self, folder: os._exit(1)  # type: ignore[method-assign]


def die_while_embedding() -> None:
    """After the first of two chunks; the run that continues it makes chunks of the same size."""
    import os

    from bertie.search import bulk

    real = bulk._Run._save

    def save(self: bulk._Run, *given: object) -> None:
        real(self, *given)  # type: ignore[arg-type]
        os._exit(1)

    bulk._Run._save = save  # type: ignore[method-assign, assignment]


def places(kind: Kind, rng: random.Random, count: int) -> list[tuple[Path, int, int]]:
    """Files, places and bits, spread over the files of the kind and, within each, over its bytes."""
    files = sorted({path for pattern in kind.files for path in kind.folder.glob(pattern) if path.is_file()})
    files = [path for path in files if path.stat().st_size]
    assert files, f"{kind.component}: there is no file"
    chosen = [files[number % len(files)] for number in range(count)]
    return [(path, rng.randrange(path.stat().st_size), 1 << rng.randrange(8)) for path in chosen]


def judge(kind: Kind, ran: Ran, found: object, wanted: object, name: str) -> str:
    if ran.fault is not None:
        return ran.fault
    if ran.code == 2:
        return "clean error" if ran.is_clean_error else "traceback"
    if kind.must_refuse:
        return "silent wrong"
    if found == wanted:
        return "recovered" if re.search("is damaged and is skipped", ran.stderr) else "same result"
    return "announced" if name in ran.stderr and "Warning" in ran.stderr else "silent wrong"


def try_kind(kind: Kind, count: int, work: Path, seed: int = 0) -> Tally:
    tally, target = Tally(FAULT, kind.component), work / "damaged"
    ran, wanted = kind.act(copy(kind.folder, target))
    assert ran.code == 0, f"{kind.component}: {ran.stderr}"
    for path, place, bit in places(kind, random.Random(f"{seed} {kind.component}"), count):
        copy(kind.folder, target)
        damaged = target / path.relative_to(kind.folder)
        content = bytearray(damaged.read_bytes())
        content[place] ^= bit
        damaged.write_bytes(content)
        ran, found = kind.act(target)
        what = f"{path.relative_to(kind.folder)} byte {place} bit {bit}"
        tally.add(judge(kind, ran, found, wanted, path.name), what, ran)
    return tally


def rows(place: Workplace, work: Path, tries: int, only: Sequence[str] = ()) -> Iterator[Tally]:
    for kind in kinds(place, work):
        if not only or kind.component in only:
            yield try_kind(kind, max(1, tries * kind.share // 100), work)
