"""`bertie pretrain`: stopped, resumed, continued, refused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bertie
from bertie.data.corpus import write_shards
from bertie.data.shards import CorpusDocument
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
STEPS = 60


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    (folder / "tokenizer").mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(40))]
    (folder / "tokenizer" / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder / "tokenizer")
    assert tokenizer is not None
    rng = np.random.default_rng(0)
    documents = []
    for number in range(80):
        length = int(rng.integers(10, 40))
        ids = rng.integers(5, 45, length).astype(np.uint16)
        sentences = np.arange(0, length, 5, dtype=np.uint32)
        documents.append(CorpusDocument(ids, sentences, np.ones(length, bool), str(number)))
    write_shards(folder, documents, tokenizer)
    return folder


def words(corpus: Path, out: Path) -> list[str]:
    given = f"--recipe bert --size tiny --steps {STEPS} --save-every 8 --seed 1 --max-length 32 --batch-tokens 256"
    more = "--held-out 10 --eval-every 30 --eval-rows 8"
    return ["pretrain", *given.split(), *more.split(), "--corpus", str(corpus), "--out", str(out)]


def start(corpus: Path, out: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bertie.cli.app", *words(corpus, out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def steps_logged(out: Path) -> list[int]:
    log = out / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return [record["step"] for record in records if record["event"] == "step"]


def wait_for(process: subprocess.Popen[str], out: Path, count: int) -> bool:
    """Until so many steps were logged; False when the process ended before."""
    while process.poll() is None:
        if len(steps_logged(out)) >= count:
            return True
        time.sleep(0.005)
    return False


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    process = start(corpus, out)
    printed, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert f"{out}/model: {STEPS} steps" in printed
    return out


def weights(out: Path) -> bytes:
    return (out / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_leaves_with_one_sentence(
    corpus: Path, undisturbed: Path, tmp_path: Path, number: int, code: int
) -> None:
    out = tmp_path / "run"
    process = start(corpus, out)
    assert wait_for(process, out, 10)
    process.send_signal(number)
    _, complaints = process.communicate()
    assert process.returncode == code
    done = steps_logged(out)[-1]
    assert complaints.splitlines()[-1].startswith(f"Stopped after {done} steps; all is saved in")
    assert (out / "checkpoints" / f"step-{done:08d}").is_dir()
    process = start(corpus, out)
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert steps_logged(out) == list(range(1, STEPS + 1)), "no step was done twice"
    assert weights(out) == weights(undisturbed)


def test_the_model_opens_and_continues(run_bertie: Run, corpus: Path, undisturbed: Path, tmp_path: Path) -> None:
    assert bertie.load(undisturbed).fill("w1 [MASK] w3", top=2)
    given = words(corpus, tmp_path / "on")
    at = given.index("--recipe")
    given[at : at + 4] = ["--base", str(undisturbed)]
    given[given.index("--steps") + 1] = "2"
    done = run_bertie(*given)
    assert done.returncode == 0, done.stderr
    first = json.loads((tmp_path / "on" / "log.jsonl").read_text().splitlines()[1])
    assert first["loss"] < 4.3, "it begins where the other ended"
    options = json.loads((tmp_path / "on" / "options.json").read_text())
    assert options["from"] == bertie.load(undisturbed).digest


def test_what_is_refused(run_bertie: Run, corpus: Path, undisturbed: Path, tmp_path: Path) -> None:
    given = words(corpus, undisturbed)
    assert run_bertie(*given).returncode == 0, "a finished run is only told again"
    other = run_bertie(*given, "--lr", "0.1", "--seed", "2")
    assert other.returncode == 2
    assert "--seed was 1, now 2; --lr was 0.0005, now 0.1" in other.stderr
    new = words(corpus, tmp_path / "run")
    nearest = run_bertie(*new, "--schedule", "lineal")
    assert (nearest.returncode, "did you mean 'linear'" in nearest.stderr) == (2, True)
    both = run_bertie(*new, "--base", undisturbed)
    assert (both.returncode, "--recipe and --base cannot both be given" in both.stderr) == (2, True)
    late = run_bertie(*new, "--warmup", 61)
    assert (late.returncode, "does not fit into 60 steps" in late.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_of_another_digest_is_refused(
    run_bertie: Run, corpus: Path, undisturbed: Path, tmp_path: Path
) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nx\n")
    done = run_bertie(*words(corpus, tmp_path / "run"), "--tokenizer", tmp_path)
    assert done.returncode == 2
    assert "the corpus was made with the tokenizer" in done.stderr


def test_help_names_an_example(run_bertie: Run) -> None:
    done = run_bertie("pretrain", "--help")
    assert done.returncode == 0
    assert "Example:\n  bertie pretrain --recipe bert" in done.stdout
