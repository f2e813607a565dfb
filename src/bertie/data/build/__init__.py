"""Turns text into a corpus folder, in stages that map over parts of the input: signing, merging, tokenizing."""

from bertie.data.build.build_options import BuildOptions
from bertie.data.build.build_run import BuildReport, add_to_corpus, build_corpus

__all__ = ["BuildOptions", "BuildReport", "add_to_corpus", "build_corpus"]
