"""Command lines that cannot work: each must be refused with one sentence. Generated from verbs and bad values."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.trying import Tally, run
from tests.faults.workplace import Workplace

SECONDS = 30

POSITIVE = ("-1", "0", "nan", "99999999999999999999", "many", "")
PATHS = ("absent", "", "x" * 5000, "~nosuchuser/x", "/dev/null", "/proc/self/mem", "loop", "name\udcff", "a\0b")


def command_lines(place: Workplace, work: Path) -> Iterator[list[object]]:
    """Yields lines that are wrong in one thing alone."""
    out, text = work / "never", "some text"
    loop = work / "loop"
    if not loop.is_symlink():
        loop.symlink_to(loop)
    paths = [str(loop) if path == "loop" else path for path in PATHS]
    pretrain, finetune = place.pretrain(out), place.finetune(out)
    embed = ["embed", place.model, place.lines, "--out", out / "v.npy"]
    build = ["corpus", "build", place.texts, "--tokenizer", place.vocab, "--out", out]
    predict, fill = ["predict", place.task, text], ["fill", place.model, "a [MASK]"]
    vocab = ["vocab", "train", place.texts, "--out", out]
    # Values of options.
    for line, options, values in (
        (pretrain, ("--max-length", "--batch-tokens", "--eval-rows"), POSITIVE),
        (pretrain, ("--steps", "--save-every"), ("-1", "0", "nan", "many", "")),
        (pretrain, ("--lr", "--dropout"), ("nan", "inf", "-1", "many", "")),
        (pretrain, ("--seed",), ("-1", "nan", "99999999999999999999", "many")),
        (finetune, ("--epochs",), ("-1", "nan", "inf", "99999999999999999999999", "many", "")),
        (finetune, ("--batch", "--max-length"), ("-1", "0", "nan", "99999999999999999999", "many")),
        (finetune, ("--lr",), ("nan", "inf", "-1", "many")),
        (finetune, ("--seed",), ("-1", "99999999999999999999", "many")),
        (embed, ("--max-length", "--size"), POSITIVE),
        (embed, ("--batch-tokens",), ("-1", "0", "nan", "many", "")),
        (build, ("--workers",), ("0", "-1", "nan", "many")),
        (build, ("--min-characters",), ("-1", "nan", "many")),
        (vocab, ("--size",), ("-1", "0", "nan", "many", "")),
        (fill, ("--top",), ("-1", "0", "nan", "many")),
    ):
        for option in options:
            for value in values:
                yield [*line, f"{option}={value}"]
    # Choices.
    choices: list[tuple[list[object], tuple[str, ...]]] = [
        (pretrain, ("--recipe", "--size", "--precision")),
        (embed, ("--pooling", "--layers", "--dtype")),
        (vocab, ("--kind",)),
        (build, ("--language", "--segmenter", "--paragraphs", "--unicode", "--format")),
    ]
    for line, names in choices:
        for option in names:
            for value in ("nosuch", "", "bert\n", "../x"):
                if (option, value) != ("--size", "bert\n"):
                    yield [*line, f"{option}={value}"]
    # Paths.
    for path in paths:
        yield ["embed", place.model, path, "--out", out / "v.npy"]
        yield ["embed", path, place.lines, "--out", out / "v.npy"]
        yield ["corpus", "verify", path]
        yield ["corpus", "report", path]
        yield ["corpus", "build", path, "--tokenizer", place.vocab, "--out", out]
        yield ["corpus", "build", place.texts, "--tokenizer", path, "--out", out]
        yield ["pretrain", "--recipe", "bert", "--size", "tiny", "--steps", 2, "--corpus", path, "--out", out]
        yield ["finetune", "classify", "--base", place.model, "--train", path, "--out", out]
        yield ["evaluate", place.task, "--data", path]
        yield ["predict", place.task, "--input", path]
        yield ["vocab", "train", path, "--out", out]
        yield ["runs", "show", path]
    # Words.
    for line in (pretrain, finetune, embed, build, predict, fill, vocab):
        yield [*line, "--nosuch", "1"]
        yield [*line, "--config", work / "absent.toml"]
    for verb in ("pretrain", "finetune", "embed", "evaluate", "predict", "fill", "vocab", "corpus", "nosuch", "whiten"):
        yield [verb, "--nosuch"]
        yield [verb, "nosuch"]
    # What does not fit together.
    yield ["corpus", "show", place.corpus, 99999]
    yield ["corpus", "show", place.corpus, -1]
    yield ["pretrain", "--corpus", place.model, "--recipe", "bert", "--size", "tiny", "--steps", 2, "--out", out]
    yield [*place.pretrain(place.corpus)]
    yield [*place.finetune(place.folder)]
    yield ["evaluate", place.model, "--data", place.rows]
    yield ["predict", place.model, text]
    yield ["embed", place.model, place.lines, "--out", place.corpus]
    yield ["embed", place.model, place.lines, "--out", out / "v.txt"]
    yield ["finetune", "classify", "--base", place.model, "--train", place.lines, "--column", "label=7", "--out", out]


def rows(place: Workplace, work: Path, only: Sequence[str] = ()) -> list[Tally]:
    """One row per verb."""
    chosen = [line for line in command_lines(place, work) if not only or line[0] in only]
    tallies: dict[str, Tally] = {}
    for line in chosen:
        tally = tallies.setdefault(str(line[0]), Tally("misuse", str(line[0])))
        ran = run(*line, seconds=SECONDS)
        shown = " ".join(str(word)[:60] for word in line[-3:]).encode("utf-8", "replace").decode()
        if ran.fault:
            tally.add(ran.fault, shown, ran)
        elif ran.is_clean_error:
            tally.add("clean error")
        else:
            tally.add("silent wrong", f"{shown}: accepted with exit code {ran.code}", ran)
    return list(tallies.values())
