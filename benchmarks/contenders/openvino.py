"""OpenVINO in float32. Settings: batch_size; streams, 1 for its latency hint, more for its throughput hint."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import openvino

from benchmarks.contenders.minilm import WIDTH
from benchmarks.contenders.onnx_model import onnx_files
from benchmarks.contenders.padded import PaddedBatches, pool
from benchmarks.contenders.protocol import serve


class WithOpenVino:
    def __init__(self) -> None:
        self.versions = {"openvino": version("openvino")}
        self.texts = PaddedBatches()
        self.lengths = self.texts.lengths
        self.model = openvino.convert_model(str(onnx_files()[0]))
        self.queues: dict[int, openvino.AsyncInferQueue] = {}
        self.vectors = np.empty((0, WIDTH), np.float32)

    def queue(self, streams: int) -> openvino.AsyncInferQueue:
        if streams not in self.queues:
            settings = {
                "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT",
                "INFERENCE_PRECISION_HINT": "f32",
                "INFERENCE_NUM_THREADS": os.environ["OMP_NUM_THREADS"],
                "NUM_STREAMS": str(streams),
            }
            compiled = openvino.Core().compile_model(self.model, "CPU", settings)
            queue = openvino.AsyncInferQueue(compiled, streams)
            queue.set_callback(self.keep)
            self.queues[streams] = queue
        return self.queues[streams]

    def keep(self, request: Any, batch: tuple[np.ndarray, np.ndarray]) -> None:
        rows, mask = batch
        self.vectors[rows] = pool(request.get_output_tensor(0).data, mask)

    def embed(self, texts: Sequence[str], settings: dict[str, int]) -> np.ndarray:
        queue = self.queue(settings["streams"])
        self.vectors = np.empty((len(texts), WIDTH), np.float32)
        for rows, inputs in self.texts.batches(texts, settings["batch_size"]):
            queue.start_async(inputs, (rows, inputs["attention_mask"]))
        queue.wait_all()
        return self.vectors


if __name__ == "__main__":
    serve(WithOpenVino)
