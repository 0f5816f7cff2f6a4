#!/usr/bin/env python3
"""Makes the checkpoints that the golden tests need and that are not stored:

    make_models.py FOLDER

gen-4, ..., gen-7-world       random models; arguments and digests are those of the oracle's golden/index.json
gen-5v1-gate, gen-5v1-log     RWKV-5.1 from gen-5v2, with a gate or with the logarithm of the bonus, and their golden data
tiny-7v0-tuned, ...           checkpoints that hold a tuned state as their own initial state
numbered_vocab.txt      512 tokens, bytes and then numbers in brackets: for gen-7, which has no vocabulary
recital                 a model of the World vocabulary that recites recital.txt after a ":" (see below)
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from typing import Dict, List

from golden_data import GEN_5, ORACLE, TUNED, WORLD, np, tensor_files, world_tokenizer

# Words of many scripts, in turn with characters of two to four bytes that come in single bytes.
RECITAL = ["Wild geese", " fly", " south", ";", "дикие", " гуси", " летят", "大雁", "飞向", "南方", "，", "天鹅", "湖",
           "上", "游", "泳", "。", "渡り鳥", "は", "夜", "に", "鳴く", "기러기", "가 ", "난다", "الإوز", " يطير", "हंस",
           " उड़", "χήνες", " đàn", " ngỗng", " żółw", " Gänse", "🪿", "🦢", "𠮷", "\n", "end"]
IN_BYTES = ["鹅", "ж", "🐦", "é", "कृ"]


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def generate(folder: pathlib.Path, name: str, arguments: str, sha256: str) -> None:
    path = folder / name
    if digest(path) == sha256:
        return
    subprocess.run([sys.executable, ORACLE / "make_random_model.py", path, *arguments.split()], check=True,
                   env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1"), stdout=subprocess.DEVNULL)
    if digest(path) != sha256:
        sys.exit(f"{path} came out with another digest than golden/index.json has")


def make_5v1(folder: pathlib.Path) -> None:
    """One decay and one bonus for each head; the oracle has no model of this version, but its reference computes it."""
    import make_golden
    text = (ORACLE / "golden_text.txt").read_bytes()
    for kind in ("gate", "log"):
        tensors: Dict[str, np.ndarray] = {}
        for name, tensor in tensor_files.read_tensors(str(GEN_5.path)).items():
            if name.endswith(("att.time_decay", "att.time_faaaa")):
                tensor = np.abs(tensor[:, 0]) + 0.1 if name.endswith("faaaa") else tensor[:, 0].reshape(-1, 1, 1)
            if kind == "log" and name.endswith(("att.gate.weight", "att.time_mix_g")):
                continue
            if kind == "log" and name.endswith("att.time_faaaa"):
                name, tensor = name.replace("time_faaaa", "time_first"), np.log(tensor)
            tensors[name] = tensor
        path = folder / f"gen-5v1-{kind}.safetensors"
        tensor_files.write_safetensors(str(path), tensors)
        make_golden.make(str(path), str(folder / f"golden-5v1-{kind}"), 5, text, lengths=(1, 7, 64))


def put_state_inside() -> None:
    for model in TUNED:
        tensors = dict(tensor_files.read_tensors(str(model.path)))
        tensors.update(tensor_files.read_tensors(str(model.state)))
        tensor_files.write_safetensors(str(model.served), tensors)


def number_tokens(path: pathlib.Path) -> None:
    single = "".join(f"{byte + 1} b'\\x{byte:02x}' 1\n" for byte in range(256))
    path.write_text(single + "".join(f"{token} '<{token}>' 5\n" for token in range(257, 512)))


def recited_tokens() -> List[int]:
    """The tokens of the pieces above, without the pieces that would repeat a token."""
    world = world_tokenizer.WorldTokenizer(str(WORLD))
    tokens = world.encode(b":")
    for i, piece in enumerate(RECITAL):
        split = IN_BYTES[i // 5].encode() if i % 5 == 4 and i // 5 < len(IN_BYTES) else b""
        for more in (world.encode(piece.encode()), [byte + 1 for byte in split]):
            if len(set(more)) == len(more) and not set(more) & set(tokens):
                tokens += more
    return tokens


def write_recital(folder: pathlib.Path, like: pathlib.Path) -> None:
    """A model whose blocks add nothing, so that a token's logits are head * emb[token]. Each token of the text has a
    random vector of +-1 as its embedding, and that vector is the next token's row of the head: greedy, it recites."""
    tensors: Dict[str, np.ndarray] = dict(tensor_files.read_tensors(str(like)))
    tokens = recited_tokens()
    width = tensors["emb.weight"].shape[1]
    random = np.random.RandomState(1)
    vectors = np.array([random.permutation(np.repeat([-1.0, 1.0], width // 2)) for _ in tokens])
    closeness = vectors @ vectors.T - width * np.eye(len(tokens))
    assert closeness.max() < 0.6 * width, "two vectors are too close to tell their tokens apart"
    for name, tensor in tensors.items():
        if name in ("emb.weight", "head.weight") or name.endswith(("att.output.weight", "ffn.value.weight")):
            tensors[name] = np.zeros_like(tensor)
        elif name.startswith(("blocks.0.ln0.", "ln_out.")):
            tensors[name] = np.full_like(tensor, 1.0 if name.endswith("weight") else 0.0)
    tensors["emb.weight"][tokens] = vectors
    tensors["head.weight"][tokens[1:] + [0]] = vectors
    tensor_files.write_safetensors(str(folder / "recital.safetensors"), tensors, "BF16")
    (folder / "recital.txt").write_bytes(world_tokenizer.WorldTokenizer(str(WORLD)).decode(tokens[1:]))


def main(arguments: List[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    generated = json.loads((ORACLE / "golden/index.json").read_text())["generated"]
    for name, model in generated.items():
        generate(folder, name, model["arguments"], model["sha256"])
    make_5v1(folder)
    put_state_inside()
    number_tokens(folder / "numbered_vocab.txt")
    write_recital(folder, folder / "gen-7-world.safetensors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
