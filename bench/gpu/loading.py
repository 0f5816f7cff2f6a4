#!/usr/bin/env python3
"""Measures how long a model in the page cache takes to reach a device, for each form of file that Skein reads:

    loading.py [--skein PROGRAM] [--device cuda] [--size 7.2b] [--small-size 1.5b] [--folder /dev/shm]
               [--forms NAME,...] [--rounds 3] [--limit 1.3] [--json OUT.json]

Makes a model of random weights in bf16 with original names (`skein bench engine --random`), and from it one form after
the other. Each is loaded --rounds times, in turn with the original, after one load that is not counted. Times are the
program's own (open_s + load_s of `skein bench engine --json`): from the path to an engine that is ready, with the check
of all weights for NaN. Prints medians and ratios to the original.

Forms in 16 bits (--size), whose logits must have the bits of the original of the same element type:
    pth hf fla fla-fused gguf-bf16          in bf16
    fp16 st gguf-f16 ggml-f16               in fp16; fp16: original names
Quantised forms (--small-size), with random blocks in GGUF files; int8 and int4 are written by `skein convert`:
    int8 int4 gguf-q8_0 gguf-q4_0 gguf-q4_k gguf-q6_k

--folder holds at most two models of --size at a time. Exit status 1 if a form did not load, has other logits, or is in
16 bits and took more than --limit times as long as the original.
"""
import argparse
import json
import math
import multiprocessing
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import zlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

PIECE = 16 << 20  # bytes that a process writes at a time
SHARD = 5 * 10**9
TOKENS = [33155, 45, 40213, 34, 11, 61, 300, 7]
BF16_FORMS = ("pth", "hf", "fla", "fla-fused", "gguf-bf16")
F16_FORMS = ("fp16", "st", "gguf-f16", "ggml-f16")
QUANTISED_FORMS = ("int8", "int4", "gguf-q8_0", "gguf-q4_0", "gguf-q4_k", "gguf-q6_k")
FORMS = (*BF16_FORMS, *F16_FORMS, *QUANTISED_FORMS)
MIXES = ("x_r", "x_w", "x_k", "x_v", "x_a", "x_g")
PAIR = re.compile(r"att\.([wavg])([12])$")


class Kind(NamedTuple):
    """A type of elements, or of blocks of them."""
    values: int
    bytes: int
    ggml: int
    scales: Tuple[int, ...] = ()  # offsets of fp16 scales in a block


KINDS = {"BF16": Kind(1, 2, 30), "F16": Kind(1, 2, 1), "F32": Kind(1, 4, 0), "F32 of F16": Kind(1, 4, 0),
         "Q8_0": Kind(32, 34, 8, (0,)), "Q4_0": Kind(32, 18, 2, (0,)), "Q4_K": Kind(256, 144, 12, (0, 2)),
         "Q6_K": Kind(256, 210, 14, (208,))}


class Original:
    """The tensors of a .safetensors file in bf16, as bits."""

    def __init__(self, path: pathlib.Path) -> None:
        self.bytes = np.memmap(path, np.uint8, "r")
        (head,) = struct.unpack("<Q", self.bytes[:8].tobytes())
        described = json.loads(self.bytes[8:8 + head].tobytes())
        described.pop("__metadata__", None)
        self.places = {name: (8 + head + of["data_offsets"][0], tuple(of["shape"])) for name, of in described.items()}
        if any(of["dtype"] != "BF16" for of in described.values()):
            raise ValueError(f"{path}: not all tensors are in bf16")

    def shape(self, name: str) -> Tuple[int, ...]:
        return self.places[name][1]

    def bits(self, name: str) -> np.ndarray:
        at, shape = self.places[name]
        return self.bytes[at:at + 2 * math.prod(shape)].view(np.uint16).reshape(shape)

    def layers(self) -> int:
        return 1 + max(int(name.split(".")[1]) for name in self.places if name.startswith("blocks."))


class Tensor(NamedTuple):
    """A tensor of a form: the rows of those of the original, one below the other."""
    name: str
    kind: str
    shape: Tuple[int, ...]
    sources: Tuple[str, ...]
    transposed: bool = False

    def size(self) -> int:
        return math.prod(self.shape) // KINDS[self.kind].values * KINDS[self.kind].bytes


class Part(NamedTuple):
    """Rows of a tensor at a place in a file."""
    path: str
    at: int
    tensor: Tensor
    first: int
    end: int


original: Optional[Original] = None  # that of the processes that write


def pattern(kind: Kind, size: int) -> np.ndarray:
    """Random blocks with scales below 1/1000, and no code of Q8_0 that llama.cpp does not write."""
    dice = np.random.default_rng(1)
    blocks = dice.integers(0, 256, (4096, kind.bytes), np.uint8)
    if kind.ggml == 8:
        blocks[blocks == 0x80] = 0
    for at in kind.scales:
        blocks[:, at:at + 2] = dice.uniform(1e-4, 1e-3, (4096, 1)).astype(np.float16).view(np.uint8)
    return np.resize(blocks.reshape(-1), size)


def converted(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind == "BF16":
        return bits
    values = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values if kind == "F32" else values.astype(np.float16).astype(np.float32 if kind == "F32 of F16" else np.float16)


def write_part(part: Part) -> None:
    tensor = part.tensor
    kind = KINDS[tensor.kind]
    if kind.values > 1:
        row = math.prod(tensor.shape[1:]) // kind.values * kind.bytes
        data = pattern(kind, (part.end - part.first) * row)
    else:
        assert original is not None
        if len(tensor.sources) > 1:
            bits = np.concatenate([original.bits(name).reshape(-1) for name in tensor.sources])
        else:
            source = original.bits(tensor.sources[0])
            bits = (source.T if tensor.transposed else source.reshape(tensor.shape))[part.first:part.end]
        data = np.ascontiguousarray(converted(bits, tensor.kind)).reshape(-1).view(np.uint8)
    # Processes that write to one file wait for each other. Those that have mapped it do not.
    np.memmap(part.path, np.uint8, "r+", part.at, data.size)[:] = data


def parts_of(path: pathlib.Path, at: int, tensor: Tensor) -> Iterator[Part]:
    rows = tensor.shape[0]
    step = rows if len(tensor.sources) > 1 or len(tensor.shape) != 2 else max(1, PIECE * rows // tensor.size())
    for first in range(0, rows, step):
        yield Part(str(path), at + tensor.size() // rows * first, tensor, first, min(rows, first + step))


def checksum(place: Tuple[str, int, int]) -> int:
    path, at, size = place
    return zlib.crc32(np.memmap(path, np.uint8, "r", at, size))


class Maker:
    """Writes forms of one original."""

    def __init__(self, path: pathlib.Path) -> None:
        self.model = Original(path)

    def pool(self) -> Any:
        global original
        original = self.model  # inherited
        return multiprocessing.get_context("fork").Pool(min(os.cpu_count() or 1, 32))

    def fill(self, path: pathlib.Path, head: bytes, tensors: Sequence[Tensor], places: Sequence[int]) -> None:
        end = max(at + tensor.size() for at, tensor in zip(places, tensors))
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(end)
        with self.pool() as pool:
            parts = [part for at, tensor in zip(places, tensors) for part in parts_of(path, at, tensor)]
            for _ in pool.imap_unordered(write_part, parts):
                pass

    def safetensors(self, path: pathlib.Path, tensors: Sequence[Tensor]) -> None:
        head: Dict[str, Any] = {"__metadata__": {"format": "pt"}}
        places, at = [], 0
        for tensor in tensors:
            head[tensor.name] = {"dtype": tensor.kind, "shape": tensor.shape, "data_offsets": [at, at + tensor.size()]}
            places.append(at)
            at += tensor.size()
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        self.fill(path, struct.pack("<Q", len(text)) + text, tensors, [8 + len(text) + at for at in places])

    def repository(self, folder: pathlib.Path, tensors: Sequence[Tensor]) -> None:
        """Shards with an index, as the library transformers writes them."""
        shards: List[List[Tensor]] = [[]]
        for tensor in tensors:
            if shards[-1] and sum(each.size() for each in shards[-1]) + tensor.size() > SHARD:
                shards.append([])
            shards[-1].append(tensor)
        folder.mkdir()
        where = {}
        for i, shard in enumerate(shards):
            name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
            self.safetensors(folder / name, shard)
            where.update({tensor.name: name for tensor in shard})
        total = sum(tensor.size() for tensor in tensors)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total},
                                                                         "weight_map": where}))
        vocabulary, width = self.model.shape("emb.weight")
        heads, head = self.model.shape("blocks.0.att.r_k")
        ffn = self.model.shape("blocks.0.ffn.key.weight")[0]
        config = {"model_type": "rwkv7", "architectures": ["RWKV7ForCausalLM"], "hidden_size": width, "vocab_size": vocabulary,
                  "num_hidden_layers": self.model.layers(), "head_dim": head, "num_heads": heads, "intermediate_size": ffn,
                  "norm_eps": 1e-5, "norm_first": True, "norm_bias": True, "attn": None, "tie_word_embeddings": False,
                  "torch_dtype": "bfloat16"}
        (folder / "config.json").write_text(json.dumps(config))

    def pth(self, path: pathlib.Path, tensors: Sequence[Tensor]) -> None:
        """As torch.save does: a zip file without compression, whose data.pkl describes the tensors."""
        members: List[Tuple[str, int, int, Optional[bytes]]] = []  # name, place of its data, size, content
        places, at = [], 0

        def put(name: str, size: int, content: Optional[bytes] = None) -> int:
            nonlocal at
            data = (at + 30 + len(name) + 4 + 63) // 64 * 64
            members.append((name, data, size, content))
            at = data + size
            return data

        pickled = pickled_tensors(tensors)
        put("archive/data.pkl", len(pickled), pickled)
        for i, tensor in enumerate(tensors):
            places.append(put(f"archive/data/{i}", tensor.size()))
        put("archive/version", 2, b"3\n")
        self.fill(path, b"", tensors, places)
        stored = [(str(path), data, size) for _, data, size, content in members if content is None]
        with self.pool() as pool:
            sums = iter(pool.map(checksum, stored, 1))
        directory, before = b"", 0
        with open(path, "r+b") as file:
            for name, data, size, content in members:
                crc = next(sums) if content is None else zlib.crc32(content)
                common = struct.pack("<HHHHIII", 0, 0, 0, 0x21, crc, size, size)
                padding = data - before - 30 - len(name) - 4
                file.seek(before)
                file.write(struct.pack("<IH", 0x04034b50, 45) + common + struct.pack("<HH", len(name), padding + 4) +
                           name.encode() + struct.pack("<2sH", b"FB", padding) + b"Z" * padding + (content or b""))
                far = struct.pack("<HHQ", 1, 8, before) if before >= 0xffffffff else b""
                directory += (struct.pack("<IHH", 0x02014b50, 45, 45) + common + struct.pack(
                    "<HHHHHII", len(name), len(far), 0, 0, 0, 0, 0xffffffff if far else before) + name.encode() + far)
                before = data + size
            file.seek(at)
            count = len(members)
            file.write(directory)
            file.write(struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, count, count, len(directory), at))
            file.write(struct.pack("<IIQI", 0x07064b50, 0, at + len(directory), 1))
            start = min(at, 0xffffffff)
            file.write(struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, count, count, len(directory), start, 0))

    def gguf(self, path: pathlib.Path, tensors: Sequence[Tensor]) -> None:
        def text(value: str) -> bytes:
            return struct.pack("<Q", len(value)) + value.encode()

        def pair(key: str, value: Any) -> bytes:
            if isinstance(value, str):
                return text(key) + struct.pack("<I", 8) + text(value)
            kind, form = (6, "f") if isinstance(value, float) else (4, "I")
            return text(key) + struct.pack("<I" + form, kind, value)

        model = self.model
        later = f"blocks.{min(1, model.layers() - 1)}.att."
        keys = {"general.architecture": "rwkv7", "general.name": "random", "rwkv7.context_length": 1048576,
                "rwkv7.embedding_length": model.shape("emb.weight")[1], "rwkv7.block_count": model.layers(),
                "rwkv7.feed_forward_length": model.shape("blocks.0.ffn.key.weight")[0], "rwkv7.attention.head_count": 0,
                "rwkv7.attention.layer_norm_epsilon": 1e-5, "rwkv7.wkv.head_size": model.shape("blocks.0.att.r_k")[1]}
        for long, short in (("decay", "w1"), ("iclr", "a1"), ("value_residual_mix", "v1"), ("gate", "g1")):
            keys[f"rwkv7.attention.{long}_lora_rank"] = model.shape(later + short)[1]
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
        head += b"".join(pair(key, value) for key, value in keys.items())
        places, at = [], 0
        for tensor in tensors:
            dims = tensor.shape[::-1]
            head += text(tensor.name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, KINDS[tensor.kind].ggml, at)
            places.append(at)
            at += (tensor.size() + 31) // 32 * 32
        head += bytes(-len(head) % 32)
        self.fill(path, head, tensors, [len(head) + place for place in places])
        with open(path, "ab") as file:
            file.write(bytes(-file.tell() % 32))

    def ggml(self, path: pathlib.Path, tensors: Sequence[Tensor]) -> None:
        vocabulary, width = self.model.shape("emb.weight")
        start = struct.pack("<6I", 0x67676d66, 101, vocabulary, width, self.model.layers(), KINDS["F16"].ggml)
        heads, places, at = [], [], len(start)
        for tensor in tensors:
            dims = tensor.shape[::-1]
            heads.append(struct.pack(f"<3I{len(dims)}I", len(dims), len(tensor.name), KINDS[tensor.kind].ggml, *dims) +
                         tensor.name.encode())
            places.append(at + len(heads[-1]))
            at = places[-1] + tensor.size()
        self.fill(path, start, tensors, places)
        with open(path, "r+b") as file:
            for head, place in zip(heads, places):
                file.seek(place - len(head))
                file.write(head)

    def make(self, form: str, folder: pathlib.Path) -> pathlib.Path:
        model = self.model
        if form in ("pth", "fp16", "st"):
            path = folder / f"model.{ {'pth': 'pth', 'fp16': 'safetensors', 'st': 'st'}[form]}"
            kind = "BF16" if form == "pth" else "F16"
            tensors = [changed(model, name, name, kind, form == "st") for name in model.places]
            self.pth(path, tensors) if form == "pth" else self.safetensors(path, tensors)
        elif form in ("hf", "fla", "fla-fused"):
            path = folder / "model"
            self.repository(path, official(model) if form == "hf" else fla(model, form == "fla-fused"))
        elif form.startswith("gguf-"):
            path = folder / "model.gguf"
            self.gguf(path, llama_cpp(model, form[5:].upper()))
        else:
            path = folder / "model.bin"
            self.ggml(path, rwkv_cpp(model))
        return path


def pickled_tensors(tensors: Sequence[Tensor]) -> bytes:
    def number(value: int) -> bytes:
        return b"\x8a\x08" + struct.pack("<q", value)

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def row(values: Sequence[int]) -> bytes:
        return b"(" + b"".join(map(number, values)) + b"t"

    out = b"\x80\x02}("
    for i, tensor in enumerate(tensors):
        stride = [math.prod(tensor.shape[axis + 1:]) for axis in range(len(tensor.shape))]
        out += (text(tensor.name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
                b"ctorch\nBFloat16Storage\n" + text(str(i)) + text("cpu") + number(math.prod(tensor.shape)) + b"tQ" +
                number(0) + row(tensor.shape) + row(stride) + b"\x89ccollections\nOrderedDict\n)RtR")
    return out + b"u."


def changed(model: Original, name: str, source: str, kind: str, pairs_transposed: bool) -> Tensor:
    shape = model.shape(source)
    transposed = pairs_transposed and PAIR.search(source) is not None
    return Tensor(name, kind, shape[::-1] if transposed else shape, (source,), transposed)


def unused(name: str) -> bool:
    return name in ("blocks.0.att.v0", "blocks.0.att.v1", "blocks.0.att.v2")


def official(model: Original) -> List[Tensor]:
    return [changed(model, name if name == "head.weight" else "rwkv7." + name, name, "BF16", False)
            for name in model.places]


def fla(model: Original, fused: bool) -> List[Tensor]:
    outside = {"emb.weight": "model.embeddings.weight", "head.weight": "lm_head.weight"}
    modules = {"receptance": "r_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj", "ln_x": "g_norm"}
    norms = {"ln0": "pre_norm", "ln1": "attn_norm", "ln2": "ffn_norm"}
    tensors = []
    for source in filter(lambda name: not unused(name), model.places):
        shape = model.shape(source)
        if not source.startswith("blocks."):
            name = outside.get(source) or source.replace("ln_out", "model.norm")
            tensors.append(Tensor(name, "BF16", shape, (source,)))
            continue
        _, layer, module, rest = source.split(".", 3)
        before = f"model.layers.{layer}."
        pair = PAIR.search(source)
        if module in norms:
            tensors.append(Tensor(f"{before}{norms[module]}.{rest}", "BF16", shape, (source,)))
        elif module == "ffn":
            tensors.append(Tensor(before + "ffn." + rest, "BF16", shape[-1:] if rest == "x_k" else shape, (source,)))
        elif pair:
            name = f"{before}attn.{pair[1]}_lora.lora.{0 if pair[2] == '1' else 2}.weight"
            tensors.append(changed(model, name, source, "BF16", True))
        elif rest in ("w0", "a0", "v0"):
            tensors.append(Tensor(f"{before}attn.{rest[0]}_lora.lora.2.bias", "BF16", shape[-1:], (source,)))
        elif rest in MIXES and fused:
            if rest == MIXES[0]:
                mixes = tuple(f"blocks.{layer}.att.{mix}" for mix in MIXES)
                tensors.append(Tensor(before + "attn.x_x", "BF16", (len(MIXES), shape[-1]), mixes))
        else:
            stem, dot, ending = rest.partition(".")
            name = before + "attn." + modules.get(stem, stem) + dot + ending
            tensors.append(Tensor(name, "BF16", shape[-1:] if rest in ("k_k", "k_a") else shape, (source,)))
    return tensors


def llama_cpp(model: Original, kind: str) -> List[Tensor]:
    """Vectors in fp32, factors of low rank in 16 bits, the other matrices as `kind`."""
    outside = {"emb": "token_embd", "head": "output", "ln_out": "output_norm"}
    norms = {"ln1": "attn_norm", "ln2": "attn_norm_2"}
    vector = "F32" if kind == "BF16" else "F32 of F16"
    factor = "BF16" if kind == "BF16" else "F16"
    tensors = []
    for source in filter(lambda name: not unused(name), model.places):
        shape = model.shape(source)
        stem, _, ending = source.rpartition(".")
        if not source.startswith("blocks."):
            tensors.append(Tensor(outside[stem] + "." + ending, kind if len(shape) == 2 else vector, shape, (source,)))
            continue
        _, layer, module, rest = source.split(".", 3)
        before = f"blk.{layer}."
        if module == "ln0":
            tensors.append(Tensor("token_embd_norm." + rest, vector, shape, (source,)))
        elif module in norms:
            tensors.append(Tensor(f"{before}{norms[module]}.{rest}", vector, shape, (source,)))
        elif module == "ffn":
            name = "lerp_k.weight" if rest == "x_k" else rest
            flat = shape[-1:] if rest == "x_k" else shape
            tensors.append(Tensor(before + "channel_mix_" + name, vector if len(flat) == 1 else kind, flat, (source,)))
        elif rest in MIXES:
            if rest == MIXES[0]:
                mixes = tuple(f"blocks.{layer}.att.{mix}" for mix in MIXES)
                tensors.append(Tensor(before + "time_mix_lerp_fused.weight", vector, (len(MIXES), 1, 1, shape[-1]), mixes))
        elif PAIR.search(source):
            tensors.append(changed(model, f"{before}time_mix_{rest}.weight", source, factor, True))
            if layer == "0" and rest[0] == "a":  # a loader wants them, though nothing uses them
                tensors.append(changed(model, f"{before}time_mix_v{rest[1]}.weight", source, factor, True))
        elif rest.endswith(".weight") and len(shape) == 2:
            tensors.append(Tensor(before + "time_mix_" + rest, kind, shape, (source,)))
        else:
            name = rest.replace("ln_x", "ln") if rest.startswith("ln_x") else rest + ".weight"
            tensors.append(Tensor(before + "time_mix_" + name, vector, (math.prod(shape),), (source,)))
            if layer == "0" and rest == "a0":
                tensors.append(Tensor(before + "time_mix_v0.weight", vector, (math.prod(shape),), (source,)))
    return tensors


def rwkv_cpp(model: Original) -> List[Tensor]:
    tensors = []
    for source in model.places:
        shape = model.shape(source)
        rest = source.split(".", 2)[-1]
        layer = source.split(".")[1]
        if rest.startswith("att.x_"):
            if rest == "att.x_r":
                mixes = tuple(f"blocks.{layer}.att.{mix}" for mix in MIXES)
                tensors.append(Tensor(f"blocks.{layer}.att.x_rwkvag", "F32 of F16", (len(MIXES), 1, shape[-1]), mixes))
        elif PAIR.search(source) or (source.endswith(".weight") and len(shape) == 2):
            tensors.append(changed(model, source, source, "F16", True))
        else:
            flat = (math.prod(shape),) if len(shape) == 3 else shape
            tensors.append(Tensor(source, "F32 of F16", flat, (source,)))
    return tensors


class Program:
    def __init__(self, path: str, device: str, folder: pathlib.Path) -> None:
        self.path, self.device, self.folder = path, device, folder

    def run(self, *words: Any) -> None:
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SKEIN_") or name.endswith("_LIBRARY")}
        ended = subprocess.run([self.path, *map(str, words)], env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            last = (ended.stderr.strip() or "no message").splitlines()[-1]
            raise RuntimeError(f"{' '.join(map(str, words[:2]))} ended with {ended.returncode}: {last}")

    def random_model(self, size: str, path: pathlib.Path) -> None:
        self.run("bench", "engine", "--random", size, "--random-file", path, "--dtype", "bf16", "--device", self.device,
                 "--batches", 1, "--prefill", "1x16", "--seconds", 0)

    def load(self, model: pathlib.Path) -> Dict[str, float]:
        out = self.folder / "bench.json"
        self.run("bench", "engine", "--model", model, "--device", self.device, "--batches", 1, "--prefill", "1x16",
                 "--seconds", 0, "--json", out)
        figures = json.loads(out.read_text())
        if "open_s" not in figures:
            raise RuntimeError(f"{self.path} is too old: skein bench engine --json does not say open_s")
        return {"open_s": figures["open_s"], "s": figures["open_s"] + figures["load_s"]}

    def logits(self, model: pathlib.Path) -> bytes:
        tokens, out = self.folder / "tokens", self.folder / "logits"
        tokens.write_text(",".join(map(str, TOKENS)))
        self.run("logits", "--model", model, "--device", self.device, "--tokens-file", tokens, "--out", out)
        return out.read_bytes()


def remove(path: pathlib.Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def bytes_of(path: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


class Measurement:
    """Of forms of one original."""

    def __init__(self, program: Program, size: str, folder: pathlib.Path, rounds: int) -> None:
        self.program, self.size, self.folder, self.rounds = program, size, folder, rounds
        self.original = folder / "original.safetensors"
        program.random_model(size, self.original)
        self.maker = Maker(self.original)
        self.expected = {"BF16": program.logits(self.original)}
        program.load(self.original)

    def row(self, form: str) -> Dict[str, Any]:
        if form in ("int8", "int4"):
            path = self.folder / "converted.safetensors"
            self.program.run("convert", self.original, path, "--dtype", form)
        else:
            path = self.maker.make(form, self.folder)
        try:
            said = self.judged(form, self.program.logits(path))
            self.program.load(path)
            loads, others = [], []
            for turn in range(self.rounds):
                loads.append(self.program.load(path))
                if turn + 1 < self.rounds or self.rounds == 1:
                    others.append(self.program.load(self.original)["s"])
            middle = {key: statistics.median(load[key] for load in loads) for key in loads[0]}
            size = bytes_of(path)
            return {"form": form, "model": self.size, "bytes": size, "original_s": statistics.median(others), **middle,
                    "all_s": [load["s"] for load in loads], "bytes_per_s": size / middle["s"],
                    "ratio": middle["s"] / statistics.median(others), "logits": said}
        finally:
            remove(path)

    def judged(self, form: str, logits: bytes) -> str:
        """What there is to say of the logits of a form."""
        if form == "fp16":
            self.expected["F16"] = logits
        expected = self.expected.get("BF16" if form in BF16_FORMS else "F16" if form in F16_FORMS else "")
        if not np.isfinite(np.frombuffer(logits, np.float32)).all():
            return "not finite"
        return "finite" if form == "fp16" or not expected else "the same bits" if logits == expected else "OTHER BITS"


def line(row: Dict[str, Any]) -> str:
    return (f"| {row['form']} | {row['model']} | {row['bytes'] / 1e9:.2f} | {row['open_s']:.2f} | {row['s']:.2f} | "
            f"{row['bytes_per_s'] / 1e9:.2f} | {row['original_s']:.2f} | {row['ratio']:.2f} | {row['logits']} |")


def measure(options: argparse.Namespace, folder: pathlib.Path) -> Tuple[List[Dict[str, Any]], bool]:
    rows, failed = [], False
    wanted = [form for form in FORMS if form in options.forms or (form == "fp16" and set(F16_FORMS) & set(options.forms))]
    program = Program(options.skein, options.device, folder)
    print("| form | model | GB | opened s | loaded s | GB/s | original s | ratio | logits |\n" + "|---" * 9 + "|", flush=True)
    for size, forms in ((options.size, (*BF16_FORMS, *F16_FORMS)), (options.small_size, QUANTISED_FORMS)):
        chosen = [form for form in wanted if form in forms]
        if not chosen:
            continue
        of = Measurement(program, size, folder, options.rounds)
        for form in chosen:
            try:
                rows.append(of.row(form))
                print(line(rows[-1]), flush=True)
                slow = form not in QUANTISED_FORMS and rows[-1]["ratio"] > options.limit
                failed = failed or slow or rows[-1]["logits"] in ("OTHER BITS", "not finite")
            except RuntimeError as trouble:
                print(f"{form}: {trouble}", flush=True)
                failed = True
        remove(of.original)
    return rows, failed


def arguments(words: Sequence[str]) -> argparse.Namespace:
    bundle = pathlib.Path(__file__).resolve().parents[2]
    beside = [path for path in (bundle / "skein", bundle / "build/release/skein") if path.is_file()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skein", default=str(beside[0]) if beside else "skein")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", default="7.2b")
    parser.add_argument("--small-size", default="1.5b")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1.3)
    parser.add_argument("--json")
    options = parser.parse_args(words)
    options.forms = options.forms.split(",")
    unknown = [form for form in options.forms if form not in FORMS]
    if unknown:
        parser.error(f"--forms: {unknown[0]} is unknown; accepted: {', '.join(FORMS)}")
    if options.rounds < 1:
        parser.error(f"--rounds: {options.rounds} is out of range (1 or more)")
    return options


def main(words: Sequence[str]) -> int:
    options = arguments(words)
    with tempfile.TemporaryDirectory(prefix="loading", dir=options.folder) as folder:
        rows, failed = measure(options, pathlib.Path(folder))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
