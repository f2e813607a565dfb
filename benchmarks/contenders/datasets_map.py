"""The usual way to a corpus with Hugging Face `datasets`: a JSON-lines file enters, blocks of ids leave in a cache.

The two `map` calls are those of the example `run_mlm.py` of transformers: tokenise whole documents, then concatenate a
batch of them and cut it into blocks. With `--ids-alone` it keeps nothing but ids, which the example does not do.

Run as `python -m benchmarks.contenders.datasets_map FILE --tokenizer FOLDER --cache FOLDER`, once for each turn.
"""

import argparse
import itertools
import json
import time
from importlib.metadata import version
from typing import Any

from datasets import disable_progress_bars, load_dataset
from transformers import AutoTokenizer
from transformers.utils import logging

BLOCK = 128  # tokens

Columns = dict[str, list[Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--ids-alone", action="store_true")
    options = parser.parse_args()
    disable_progress_bars()
    logging.set_verbosity_error()  # it would warn of documents that are longer than a model's input
    begun = time.perf_counter()
    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer, use_fast=True)
    kept = {"return_attention_mask": False, "return_token_type_ids": False} if options.ids_alone else {}

    def tokenise(rows: Columns) -> Columns:
        columns: Columns = tokenizer(rows["text"], return_special_tokens_mask=not options.ids_alone, **kept)
        return columns

    def group(rows: Columns) -> Columns:
        joined = {name: list(itertools.chain(*column)) for name, column in rows.items()}
        end = len(joined["input_ids"]) // BLOCK * BLOCK  # the rest of the batch is dropped
        return {name: [row[at : at + BLOCK] for at in range(0, end, BLOCK)] for name, row in joined.items()}

    raw = load_dataset("json", data_files=options.file, split="train", cache_dir=options.cache)
    tokenised = raw.map(tokenise, batched=True, num_proc=options.processes, remove_columns=raw.column_names)
    blocks = tokenised.map(group, batched=True, num_proc=options.processes)
    seconds = time.perf_counter() - begun
    versions = {name: version(name) for name in ("datasets", "transformers", "tokenizers", "pyarrow")}
    num_tokens = len(blocks) * BLOCK - 2 * len(raw)  # without the special tokens of each document
    print(json.dumps({"seconds": seconds, "documents": len(raw), "tokens": num_tokens, "versions": versions}))


if __name__ == "__main__":
    main()
