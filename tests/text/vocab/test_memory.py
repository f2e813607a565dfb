"""`--ram` holds: the highest resident memory of `bertie vocab train`, in a process of its own."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import re, sys
from pathlib import Path
from bertie.cli.app import main
try:
    main()
finally:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def write_texts(path: Path, num_bytes: int) -> None:
    """Hardly a word occurs twice: encoded data, links, Chinese clauses, and lines without any white space."""
    rng = random.Random(0)
    clauses = "".join(chr(0x4E00 + int(rng.paretovariate(0.7)) % 6000) for _ in range(100_000))
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < num_bytes:
            data = ["".join(rng.choices(LETTERS, k=rng.choice([70, 300, 2000]))) for _ in range(20)]
            links = [f"http://{rng.getrandbits(200):x}.org/{rng.getrandbits(300):x}" for _ in range(40)]
            starts = [rng.randrange(99_000) for _ in range(40)]
            chinese = [clauses[start : start + rng.randint(5, 40)] for start in starts]
            joined = "".join(clauses[start : start + 500] for start in starts) if rng.random() < 0.05 else ""
            text = "\n".join([" ".join(data), " ".join(links), "，".join(chinese), joined])
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")


def test_the_command_does_not_load_torch() -> None:
    """It would take most of the least memory that can be asked for."""
    code = "import sys, bertie.cli.command, bertie.jobs.text.vocab; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram"])
def test_memory_stays_under_what_was_asked_for(kind: str, tmp_path: Path) -> None:
    write_texts(tmp_path / "texts.jsonl", 15_000_000)
    words = ["vocab", "train", tmp_path / "texts.jsonl", "--kind", kind, "--out", tmp_path / "vocab", "--ram", "0.3"]
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *map(str, words), "--json"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["num_left_out"] > 20_000  # so the limit was reached
    assert int(ran.stderr.split()[-1]) * 1024 <= 300_000_000
