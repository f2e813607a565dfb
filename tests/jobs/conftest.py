"""What tests of jobs share: commands that raise their errors, and a small vocabulary."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bertie.cli.app import bertie


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`run("corpus", "build", ...)` returns what was printed to stdout. Errors are raised."""

    def call(*arguments: object) -> str:
        capsys.readouterr()
        bertie.main(args=[str(argument) for argument in arguments], prog_name="bertie", standalone_mode=False)
        return capsys.readouterr().out

    return call


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz."
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return folder
