"""A csv of a gigabyte: its rows are right at any place, and the process stays small."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import random, re, sys, time
from pathlib import Path
from bertie.data.rows import open_rows

def resident(field):
    return int(re.search(field + r":\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

before = resident("VmRSS")
begun = time.monotonic()
rows = open_rows([sys.argv[1]])
indexed = time.monotonic() - begun
rng, num_rows = random.Random(0), rows.num_rows
begun = time.monotonic()
for number in [0, num_rows - 1, *(rng.randrange(num_rows) for _ in range(200_000))]:
    row = rows.row(number)
    assert row.values["id"] == str(number), (number, row)
    assert row.values["text"].endswith(f'"line" {number}') and row.where.endswith(f":{2 * number + 2}"), row
read = time.monotonic() - begun
print(f"{num_rows:,} rows, indexed in {indexed:.1f} s, {200_000 / read:,.0f} rows/s, ", end="")
print(f"grown by {resident('VmHWM') - before}")
assert "torch" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_gigabyte_is_indexed_not_read(tmp_path: Path) -> None:
    path, num_rows, filler = tmp_path / "large.csv", 0, "a text of some words, " * 8
    with path.open("w", encoding="utf-8") as file:
        file.write("id,text\n")
        while file.tell() < 1_000_000_000:
            block = range(num_rows, num_rows + 50_000)
            file.write("".join(f'{number},"{filler}\n""line"" {number}"\n' for number in block))
            num_rows = block.stop
    ran = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True)
    path.unlink()
    assert ran.returncode == 0, ran.stderr
    sys.stdout.write(ran.stdout)
    assert ran.stdout.startswith(f"{num_rows:,} rows")
    grown = re.search(r"grown by (\d+)", ran.stdout)
    assert grown is not None and int(grown[1]) < 300_000_000
