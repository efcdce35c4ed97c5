"""The checkpoint format from Python: ten lines to write one, three to read one.  write_h5py.py write|read FILE"""
import json
import sys

import h5py
import numpy as np


def write(path):
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "statescope-checkpoint"
        file.attrs["version"] = 1
        file.attrs["config"] = json.dumps({"model_type": "gla"})
        tensors = file.create_group("tensors")
        tensors["a.weight"] = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        tensors["b.weight"] = np.array([1, -2], np.float16)
        tensors["c.weight"] = np.array([0x3F80, 0xC000], np.uint16)  # the bits of bfloat16 1, -2
        tensors["c.weight"].attrs["dtype"] = "bfloat16"
        tensors.create_dataset("d.weight", data=np.ones((300, 80), np.float32), compression="gzip", shuffle=True)
        file["tokenizer/tokenizer.json"] = np.frombuffer(b'{"a": 0}', np.uint8)


def read(path):
    with h5py.File(path) as file:
        config = json.loads(file.attrs["config"])
        weights = {name: np.asarray(tensor) for name, tensor in file["tensors"].items()}
    return config, weights


def check(path):
    config, weights = read(path)
    assert config == {"model_type": "gla"}
    assert (weights["a.weight"] == [[1, 2, 3], [4, 5, 6]]).all() and weights["a.weight"].dtype == np.float32
    assert (weights["b.weight"] == [1, -2]).all() and weights["b.weight"].dtype == np.float16
    assert (weights["c.weight"].astype(np.float32) == [1, -2]).all()
    assert (weights["d.weight"] == np.ones((300, 80))).all()
    with h5py.File(path) as file:
        assert bytes(file["tokenizer/tokenizer.json"]) == b'{"a": 0}'


{"write": write, "read": check}[sys.argv[1]](sys.argv[2])
