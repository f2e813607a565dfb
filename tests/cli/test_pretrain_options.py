"""The options of `bertie pretrain`: budgets, files, objectives, frozen corpora, models to continue; what is refused."""

import json
import random
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertie
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "larch"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents of some sentences, with a word in them that the vocabulary has only in pieces."""
    file = tmp_path_factory.mktemp("text") / "text.txt"
    drawn = random.Random(0)
    documents = []
    for _ in range(40):
        sentences = [f"The {' '.join(drawn.choices(WORDS, k=6))} of {drawn.choice(WORDS)}quartz." for _ in range(5)]
        documents.append("\n".join(sentences))
    file.write_text("\n\n".join(documents) + "\n")
    return file


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *(f"##{one}" for one in letters), *WORDS]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return folder


@pytest.fixture(scope="module")
def corpus(text: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(text, vocabulary, tmp_path_factory.mktemp("corpus") / "c")


def build(text: Path, vocabulary: Path, out: Path) -> Path:
    from bertie.cli.app import main

    with pytest.raises(SystemExit) as leaving:
        main(["corpus", "build", str(text), "--tokenizer", str(vocabulary), "--out", str(out), "--workers", "1"])
    assert not leaving.value.code
    return out


SMALL = [
    *("--size", "tiny", "--max-length", "32", "--batch-tokens", "256"),
    *("--held-out", "10", "--eval-rows", "8", "--save-every", "50"),
]


@pytest.fixture
def train(run_bertie: Run, corpus: Path, tmp_path: Path) -> Callable[..., tuple[Path, str]]:
    """`train("--steps", 3)`: the run folder of a tiny run, and what was said of it."""

    def run(*given: object, on: Path = corpus, name: str = "run") -> tuple[Path, str]:
        done = run_bertie("pretrain", "--corpus", on, "--out", tmp_path / name, *given)
        assert done.returncode == 0, done.stderr
        return tmp_path / name, done.stderr

    return run


@pytest.fixture
def refused(run_bertie: Run, corpus: Path, tmp_path: Path) -> Callable[..., str]:
    """What is said where a run is refused, which makes no folder."""

    def run(*given: object, on: Path = corpus) -> str:
        done = run_bertie("pretrain", "--corpus", on, "--out", tmp_path / "refused", *given)
        assert done.returncode == 2
        assert not (tmp_path / "refused").exists()
        return done.stderr

    return run


def logged(out: Path, event: str = "step") -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [record for record in records if record["event"] == event]


def options_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "options.json").read_text())


def weights(out: Path) -> bytes:
    return (out / "model" / "model.safetensors").read_bytes()


def test_budgets(train: Callable[..., tuple[Path, str]]) -> None:
    out, _ = train("--recipe", "bert", *SMALL, "--tokens", "1k", name="tokens")
    assert logged(out)[-2]["tokens"] < 1000 <= logged(out)[-1]["tokens"]
    assert "share_of_peak" in logged(out)[-1]
    out, _ = train("--recipe", "bert", *SMALL, "--time", "0.5s", name="time")
    assert options_of(out)["options"]["budget"] == {"kind": "time", "seconds": 0.5}
    assert logged(out)[-1]["seconds"] >= 0.5 and logged(out)[-1]["progress"] == 1
    assert bertie.load(out).fill("the [MASK]", top=1)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((), "say how long to train; give --steps, --tokens or --time"),
        (("--steps", 3, "--tokens", "1k"), "--steps and --tokens cannot both be given"),
        (("--tokens", "lots"), "--tokens: 'lots' is not a count"),
        (("--time", 90), "--time: '90' is not a time; write it like 90m"),
        (("--time", "1m", "--warmup", 50), "--warmup 50 is in steps, but the run is not"),
        (("--steps", 3, "--mask", "spam"), "there is no --mask 'spam'; did you mean 'span'?"),
        (("--steps", 3, "--sentences", "nps"), "there is no --sentences 'nps'; did you mean 'nsp'?"),
        (("--steps", 3, "--mask-rate", 1.5), "--mask-rate: input should be less than 1"),
        (("--steps", 3, "--curriculum", "16:1"), "--max-length and --curriculum cannot both be given"),
        (("--steps", 3, "--ramp-from", 500), "a ramp from 500 tokens does not rise to 256"),
        (("--steps", 3, "--ramp-from", 40), "a budget of 40 tokens is too small for rows of up to 32"),
        (("--stepz", 3), "No such option '--stepz'. (Did you mean one of: "),
    ],
)
def test_what_is_refused(refused: Callable[..., str], given: tuple[object, ...], complaint: str) -> None:
    assert complaint in refused("--recipe", "bert", *SMALL, *given)


def test_a_run_can_be_repeated_from_its_own_file(train: Callable[..., tuple[Path, str]], tmp_path: Path) -> None:
    course = (
        "--curriculum",
        "16:0.5,32:0.5",
        "--ramp-from",
        64,
        "--ramp-share",
        0.5,
        "--mask",
        "span",
        "--mask-rate",
        0.3,
    )
    more = ("--sentences", "sop", "--static-masks", 2, "--schedule", "cosine", "--warmup", 2)
    small = [word for word in SMALL if word not in ("--max-length", "32")]
    out, _ = train("--recipe", "bert", *small, "--steps", 6, "--seed", 3, "--lr", 1e-5, *course, *more, name="first")
    config = tomllib.loads((out / "config.toml").read_text())
    training = config["training"]
    assert (training["lr"], training["batch_tokens"], training["curriculum"]) == (1e-5, 256, "16:0.5,32:0.5")
    assert config["output"]["eval_every"] == 50 and training["warmup"] == pytest.approx(2 / 6)
    again, _ = train("--config", out / "config.toml", name="again")
    assert options_of(again) == options_of(out)
    assert weights(again) == weights(out)
    assert (again / "config.toml").read_text() == (out / "config.toml").read_text()
    other, _ = train("--config", out / "config.toml", "--tokens", 300, "--mask", "token", name="other")
    assert options_of(other)["options"]["budget"] == {"kind": "tokens", "tokens": 300}
    assert options_of(other)["recipe"]["objectives"][0]["choose"] == {"kind": "tokens"}
    assert options_of(other)["recipe"]["objectives"][0]["rate"] == 0.3


def test_a_file_may_hold_all(run_bertie: Run, corpus: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        f'corpus = "{corpus}"\nout = "{tmp_path}/run"\nrecipe = "bert"\nsize = "tiny"\nsteps = 2\nheld_out = 0\n'
    )
    assert run_bertie("pretrain", "--config", file).returncode == 0
    file.write_text("step = 2\n")
    done = run_bertie("pretrain", "--config", file)
    assert (done.returncode, "c.toml: there is no option `step`; did you mean --steps?" in done.stderr) == (2, True)


def test_objectives_by_name(train: Callable[..., tuple[Path, str]]) -> None:
    out, said = train(
        "--recipe", "bert", *SMALL, "--steps", 2, "--sentences", "none", "--mask", "whole-word", name="none"
    )
    assert "sentence" not in said and "masked_lm" in logged(out)[0]
    out, said = train("--recipe", "bert", *SMALL, "--steps", 2, "--sentences", "sop", name="sop")
    assert "sentence order accuracy" in said


def test_a_frozen_corpus_is_trained_on(
    run_bertie: Run, train: Callable[..., tuple[Path, str]], refused: Callable[..., str], corpus: Path, tmp_path: Path
) -> None:
    frozen = tmp_path / "frozen"
    given = ("--recipe", "bert", "--max-length", 24, "--mask", "span", "--held-out", 10, "--duplicate-factor", 2)
    assert run_bertie("corpus", "freeze", corpus, *given, "--out", frozen).returncode == 0
    wishes = (
        "--recipe",
        "bert",
        "--size",
        "tiny",
        "--batch-tokens",
        256,
        "--eval-rows",
        8,
        "--mask",
        "span",
        "--steps",
        3,
    )
    out, said = train(*wishes, on=frozen)
    assert options_of(out)["options"]["length"] == 24, "the length is the frozen one"
    assert "by frequency" in said
    plain, _ = train(*wishes, "--max-length", 24, "--held-out", 10, name="plain")
    held = [logged(folder, "evaluation")[0] for folder in (out, plain)]
    assert held[0]["masked_lm_accuracy"] == pytest.approx(held[1]["masked_lm_accuracy"], abs=0.2)
    assert len({record["unigram_loss"] for record in held}) == 2, "one counts what is masked, the other all"
    told = refused(*wishes, "--mask", "token", "--mask-rate", 0.2, "--max-length", 32, on=frozen)
    assert "masked-lm.choose.kind: 'spans' frozen, 'tokens' here" in told
    assert "masked-lm.rate: 0.15 frozen, 0.2 here" in told and "length: 24 frozen, 32 here" in told
    told = refused(*wishes, "--sentences", "none", on=frozen)
    assert "objectives: 'masked-lm, next-sentence' frozen, 'masked-lm' here" in told
    assert "leave out --static-masks" in refused(*wishes, "--static-masks", 3, on=frozen)


def test_a_model_is_continued_after_its_vocabulary_was_extended(
    run_bertie: Run,
    train: Callable[..., tuple[Path, str]],
    refused: Callable[..., str],
    text: Path,
    corpus: Path,
    tmp_path: Path,
) -> None:
    first, _ = train("--recipe", "bert", *SMALL, "--steps", 3, name="first")
    (tmp_path / "words.txt").write_text("amberquartz\nbirchquartz\n")
    longer = tmp_path / "longer"
    done = run_bertie("vocab", "extend", first, "--words", tmp_path / "words.txt", "--out", longer)
    assert done.returncode == 0, done.stderr
    small = [word for word in SMALL if word not in ("--size", "tiny")]
    told = refused("--base", longer, *small, "--steps", 3)
    assert "is not the corpus's" in told and "build the corpus with the model's own tokenizer" in told
    anew = build(text, longer, tmp_path / "anew")
    out, _ = train("--base", longer, *small, "--steps", 3, "--sentences", "none", on=anew, name="on")
    tokenizer = load_tokenizer(out / "model")
    assert tokenizer is not None and tokenizer.id_of("amberquartz") is not None
    assert bertie.load(out).recipe.vocab_size == tokenizer.size > bertie.load(first).recipe.vocab_size
    assert options_of(out)["from"] == bertie.load(longer).digest
    assert tomllib.loads((out / "config.toml").read_text())["model"]["base"] == str(longer)
    told = refused("--base", longer, *small, "--steps", 3, "--max-length", 600, "--batch-tokens", 2000, on=anew)
    assert "rows of 600 tokens are longer than the model takes" in told


def test_a_checkpoint_of_another_shape_is_refused(
    train: Callable[..., tuple[Path, str]], run_bertie: Run, corpus: Path
) -> None:
    given = ("--recipe", "bert", *SMALL, "--steps", 2)
    out, _ = train(*given)
    other, _ = train(*given, "--sentences", "none", name="other")
    (out / "summary.json").unlink()
    shutil.rmtree(out / "checkpoints")
    (other / "checkpoints").rename(out / "checkpoints")
    done = run_bertie("pretrain", "--corpus", corpus, "--out", out, *given)
    assert (done.returncode, "heads.next-sentence.output.bias differs" in done.stderr) == (2, True)
    assert len(logged(out)) == 2, "no step was taken"


def test_figures_for_tensorboard_and_the_precision_told(
    run_bertie: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["pretrain", "--recipe", "bert", *SMALL, "--corpus", str(corpus), "--steps", "3"]
    done = run_bertie(*given, "--out", str(tmp_path / "a"), "--tensorboard", "--precision", "bfloat16")
    assert done.returncode == 0, done.stderr
    assert "computing in bfloat16: as asked" in done.stderr
    assert list((tmp_path / "a/tensorboard").glob("events.*"))
    assert json.loads((tmp_path / "a/options.json").read_text())["options"]["precision"] == "bfloat16"
    monkeypatch.setattr("bertie.jobs.training.pretrain.find_spec", lambda name: None)
    refused = run_bertie(*given, "--out", str(tmp_path / "b"), "--tensorboard")
    assert refused.returncode == 2
    assert "TensorBoard is not installed" in refused.stderr
    assert not (tmp_path / "b").exists()


def test_a_run_that_warms_up_to_its_end_is_repeated_by_its_own_file(
    train: Callable[..., tuple[Path, str]], run_bertie: Run, corpus: Path
) -> None:
    first, _ = train("--recipe", "bert", *SMALL, "--steps", 3, "--warmup", 3, name="first")
    again, told = train("--config", first / "config.toml", name="again")
    assert options_of(first)["options"] == options_of(again)["options"]
    assert weights(first) == weights(again)
    assert "finished before" not in told
    _, told = train("--config", first / "config.toml", name="again")
    assert "finished before; nothing was trained" in told
    done = run_bertie("pretrain", "--corpus", corpus, "--out", again, "--config", first / "config.toml", "--seed", 1)
    assert done.returncode == 2 and "started with other options" in done.stderr
    assert "finished before" not in done.stderr


def decided(run: Path) -> tuple[str, Any, int]:
    """Recipe, optimizer and tokens of a step, as the run keeps them."""
    content = json.loads((run / "options.json").read_text())
    return content["recipe"]["name"], content["options"]["optimizer"], content["options"]["batch_tokens"]


LEAST = ["--size", "tiny", "--max-length", "32", "--held-out", "0", "--steps", "1", "--quiet"]


def test_what_is_trained_where_nothing_is_named(corpus: Path, tmp_path: Path, run_bertie: Run) -> None:
    """The recipe for small budgets, with its own settings; papers' recipes keep BERT's."""
    for recipe, expected in (((), ("quick", 2e-3, 1024)), (("--recipe", "modernbert"), ("modernbert", 5e-4, 4096))):
        run = tmp_path / expected[0]
        done = run_bertie("pretrain", *recipe, *LEAST, "--corpus", corpus, "--out", run)
        assert done.returncode == 0, done.stderr
        name, optimizer, batch_tokens = decided(run)
        assert (name, optimizer["rate"], batch_tokens) == expected
        config = tomllib.loads((run / "config.toml").read_text())
        assert (config["model"]["recipe"], config["training"]["lr"], config["training"]["batch_tokens"]) == expected
    again = run_bertie("pretrain", "--config", tmp_path / "quick" / "config.toml", "--quiet", "--out", tmp_path / "b")
    assert again.returncode == 0, again.stderr
    assert decided(tmp_path / "b") == decided(tmp_path / "quick")
    # What continues a model does not learn as fast as one from random weights.
    base = ["--base", tmp_path / "quick", *LEAST[2:], "--corpus", corpus, "--out", tmp_path / "c"]
    assert run_bertie("pretrain", *base).returncode == 0
    name, optimizer, batch_tokens = decided(tmp_path / "c")
    assert (name, optimizer["rate"], batch_tokens) == ("quick", 5e-4, 4096)
    refused = run_bertie("pretrain", *base, "--size", "mini")
    assert (refused.returncode, "--size and --base cannot both be given" in refused.stderr) == (2, True)


def test_muon_for_the_matrices_of_the_layers(corpus: Path, tmp_path: Path, run_bertie: Run) -> None:
    words = ["pretrain", *LEAST, "--corpus", corpus, "--out", tmp_path / "run"]
    done = run_bertie(*words, "--optimizer", "muon", "--lr", "1e-3", "--weight-decay", "0.1")
    assert done.returncode == 0, done.stderr
    _, optimizer, _ = decided(tmp_path / "run")
    kinds = [(group["parameters"], group["optimizer"]["kind"]) for group in optimizer["groups"]]
    assert kinds == [("matrices", "muon"), ("all", "adamw")]
    assert {(group["optimizer"]["rate"], group["optimizer"]["decay"]) for group in optimizer["groups"]} == {(1e-3, 0.1)}
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert (config["training"]["optimizer"], config["training"]["lr"]) == ("muon", 1e-3)
    changed = run_bertie(*words, "--lr", "1e-3", "--weight-decay", "0.1")
    assert changed.returncode == 2
    assert "--optimizer was muon, now adamw" in changed.stderr and "--lr" not in changed.stderr
