"""ONNX Runtime in float32 on the fused graph. Settings: batch_size; streams, how many batches share the threads."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import numpy as np
import onnxruntime

from benchmarks.contenders.minilm import WIDTH
from benchmarks.contenders.onnx_model import onnx_files
from benchmarks.contenders.padded import PaddedBatches, pool
from benchmarks.contenders.protocol import serve


class WithOnnxRuntime:
    def __init__(self) -> None:
        self.versions = {name: version(name) for name in ("onnxruntime", "onnx")}
        self.texts = PaddedBatches()
        self.lengths = self.texts.lengths
        self.sessions: dict[int, onnxruntime.InferenceSession] = {}

    def session(self, streams: int) -> onnxruntime.InferenceSession:
        if streams not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = max(1, int(os.environ["OMP_NUM_THREADS"]) // streams)
            options.inter_op_num_threads = 1
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
            self.sessions[streams] = onnxruntime.InferenceSession(
                str(onnx_files()[1]), options, providers=["CPUExecutionProvider"]
            )
        return self.sessions[streams]

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        session = self.session(settings["streams"])
        vectors = np.empty((len(texts), WIDTH), np.float32)

        def run(batch: tuple[np.ndarray, dict[str, np.ndarray]]) -> None:
            rows, inputs = batch
            vectors[rows] = pool(session.run(None, inputs)[0], inputs["attention_mask"])

        batches = self.texts.batches(texts, settings["batch_size"])
        if settings["streams"] == 1:
            for batch in batches:
                run(batch)
        else:
            with ThreadPoolExecutor(settings["streams"]) as pool_of_threads:
                list(pool_of_threads.map(run, batches))
        return vectors


if __name__ == "__main__":
    serve(WithOnnxRuntime)
