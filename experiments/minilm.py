"""The folder of all-MiniLM-L6-v2, which all contenders begin with: nothing enters, a copy of it leaves.

`python -m experiments.minilm --out FOLDER`: so that a cell's commands name no folder of an environment.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path


def main(words: Sequence[str] | None = None) -> None:
    from benchmarks.contenders.minilm import FOLDER

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    shutil.copytree(FOLDER, parser.parse_args(words).out, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
