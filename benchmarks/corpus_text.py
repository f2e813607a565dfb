"""What a corpus is built from: a JSON-lines file enters, the file of a run and the size of its text leave."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from bertie.errors import InputError


@dataclass(frozen=True)
class Source:
    file: Path
    num_bytes: int  # of the texts alone
    num_documents: int


def prepare(file: Path, folder: Path, limit: int | None) -> Source:
    """The whole file as it is, or its first documents, up to `limit` bytes of text, as a new file in `folder`. It is
    read to its end either way, so that no contender has to wait for a cold disk."""
    if not file.is_file():
        hint = "give its folder with --data or $BERTIE_SHARED"
        raise InputError("the benchmark's text is missing", where=str(file), hint=hint)
    lines: list[bytes] = []
    num_bytes = num_documents = 0
    with gzip.open(file, "rb") as stream:
        for line in stream:
            num_bytes += len(json.loads(line)["text"].encode("utf-8"))
            num_documents += 1
            if limit is not None:
                lines.append(line)
                if num_bytes >= limit:
                    break
    if limit is None:
        return Source(file, num_bytes, num_documents)
    sample = folder / file.name
    with gzip.open(sample, "wb", compresslevel=6) as stream:
        stream.writelines(lines)
    return Source(sample, num_bytes, num_documents)
