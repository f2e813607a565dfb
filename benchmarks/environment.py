"""The peers' own environment: nothing enters, the path of a Python that has them leaves.

They are kept out of bertie's environment: what they need must not decide what bertie runs with.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from bertie.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
REQUIREMENTS = Path(__file__).with_name("peers-requirements.txt")
FOLDER = ROOT / ".venv-peers"


def peers_python(given: str | None) -> Path:
    """The Python that was asked for, else that of `.venv-peers`, which is made or renewed where needed."""
    if given:
        if not Path(given).is_file():
            raise UserError("there is no Python here", where=given, hint="give the path of bin/python")
        return Path(given)
    python, stamp = FOLDER / "bin" / "python", FOLDER / ".installed"
    wanted = hashlib.sha256(CONSTRAINTS.read_bytes() + REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    print(f"making {FOLDER.name} for the peers; this happens once", file=sys.stderr)
    _call(sys.executable, "-m", "venv", "--clear", str(FOLDER))
    install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(CONSTRAINTS))
    # torch comes first and alone: what follows then asks for no other build of it.
    _call(*install, "torch")
    _call(*install, "-r", str(REQUIREMENTS))
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _call(*command: str) -> None:
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"the peers' environment could not be made (exit code {error.returncode}): {' '.join(command)}",
            where=str(FOLDER),
            hint="see pip's message above",
        ) from None
