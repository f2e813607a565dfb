"""The questions were written before any model was asked. They stand here once more, so that nobody bends them."""

from bertie.quickstart.questions import questions

WRITTEN_FIRST = {
    "read a csv file": "csv",
    "run a command and get its output": "subprocess",
    "parse command-line options": "argparse, optparse, typer, click",
    "compress a file": "gzip, zlib, bz2, lzma, zipfile",
    "match text against a pattern": "re",
    "copy a folder": "shutil",
    "date arithmetic": "datetime",
    "random choice": "random, secrets, numpy",
    "hash a password or file": "hashlib",
    "read json": "json",
    "temporary file": "tempfile",
    "count things": "collections",
    "cache results of a function": "functools",
    "send an http request": "urllib, http, httpx, requests",
    "measure time of code": "timeit, time",
    "run in parallel": "multiprocessing, concurrent, threading, joblib",
    "write logs": "logging",
    "iterate in combinations": "itertools",
    "matrix multiplication": "numpy, torch, operator",
    "split text into tokens": "tokenize, tokenizers, shlex",
}


def test_the_questions_are_as_they_were_written() -> None:
    assert {one.question: ", ".join(one.accepted) for one in questions()} == WRITTEN_FIRST
    assert len(questions()) == 20
