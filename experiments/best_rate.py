"""Chooses a learning rate: runs of `bertie finetune` with dev enter, the rate of the best leaves as a config file.

`python -m experiments.best_rate RUN... --figure accuracy --out best.toml`: the first of equals counts.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bertie.train.folder.run_folder import SUMMARY, read_object


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--figure", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    best = max(options.runs, key=lambda run: read_object(run / SUMMARY)["evaluation"][options.figure])
    rate = read_object(best / "options.json")["options"]["optimizer"]["rate"]
    options.out.write_text(f"[training]\nlr = {rate!r}\n", "utf-8")


if __name__ == "__main__":
    main()
