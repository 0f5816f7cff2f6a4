"""Writes models as GGUF files, as convert_hf_to_gguf.py and llama-quantize of llama.cpp do: names, transposes, fused token
shifts, dummies in layer 0, scaled outputs of RWKV-6, and plain encoders of the quantised types, which need not be as good
as llama.cpp's.

    gguf_files.py MODEL.safetensors FILE.gguf TYPE [VOCABULARY]
"""
import pathlib
import re
import struct
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from golden_data import np, tensor_files, world_tokenizer


class Encoded(NamedTuple):
    raw: bytes
    values: np.ndarray  # what the bytes mean, float32


def _halves(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32)


def _quotients(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.divide(x, by, out=np.zeros(np.broadcast(x, by).shape, np.float32), where=by != 0)


def _raw(*parts: np.ndarray) -> bytes:
    """The parts of each block, one after the other."""
    blocks = len(parts[0])
    return np.concatenate([np.ascontiguousarray(part).reshape(blocks, -1).view(np.uint8).reshape(blocks, -1)
                           for part in parts], axis=1).tobytes()


def _nibbles(codes: np.ndarray) -> np.ndarray:
    """32 codes of 4 bits in 16 bytes: the first half in the low, the second in the high bits."""
    return (codes[..., :16] | codes[..., 16:] << 4).astype(np.uint8)


def _extreme(x: np.ndarray) -> np.ndarray:
    """The value of the largest magnitude, with its sign."""
    return np.take_along_axis(x, np.abs(x).argmax(axis=-1)[..., None], axis=-1)


def _q8_0(x: np.ndarray) -> Encoded:
    d = _halves(np.abs(x).max(axis=1, keepdims=True) / 127)
    q = np.clip(np.rint(_quotients(x, d)), -127, 127)
    return Encoded(_raw(d.astype(np.float16), q.astype(np.int8)), d * q)


def _centred(x: np.ndarray, bits: int) -> Encoded:
    zero = 1 << (bits - 1)
    d = _halves(_extreme(x) / -zero)
    q = np.clip(np.rint(_quotients(x, d)) + zero, 0, 2 * zero - 1).astype(np.uint32)
    return Encoded(_raw(d.astype(np.float16), *_codes_of_32(q, bits)), d * (q.astype(np.float32) - zero))


def _with_minimum(x: np.ndarray, bits: int) -> Encoded:
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    d, m = _halves((high - low) / ((1 << bits) - 1)), _halves(low)
    q = np.clip(np.rint(_quotients(x - m, d)), 0, (1 << bits) - 1).astype(np.uint32)
    return Encoded(_raw(d.astype(np.float16), m.astype(np.float16), *_codes_of_32(q, bits)), d * q.astype(np.float32) + m)


def _codes_of_32(q: np.ndarray, bits: int) -> List[np.ndarray]:
    fifth = [np.sum((q >> 4) << np.arange(32, dtype=np.uint32), axis=1, dtype=np.uint32)] if bits == 5 else []
    return [*fifth, _nibbles(q & 15)]


def _parts_of_32(x: np.ndarray, bits: int) -> Encoded:
    """Q4_K and Q5_K: eight parts with a scale and a minimum of six bits each."""
    parts = x.reshape(-1, 8, 32)
    low, high = np.minimum(parts.min(axis=2), 0), parts.max(axis=2)
    scale = (high - low) / ((1 << bits) - 1)
    d, dmin = (_halves(each.max(axis=1, keepdims=True) / 63) for each in (scale, -low))
    sc, m = (np.clip(np.rint(_quotients(each, by)), 0, 63).astype(np.uint32) for each, by in ((scale, d), (-low, dmin)))
    factor, minimum = d * sc.astype(np.float32), dmin * m.astype(np.float32)
    q = np.clip(np.rint(_quotients(parts + minimum[..., None], factor[..., None])), 0, (1 << bits) - 1).astype(np.uint32)
    values = factor[..., None] * q.astype(np.float32) - minimum[..., None]
    packed = np.concatenate([sc[:, :4] | sc[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6,
                             (sc[:, 4:] & 15) | (m[:, 4:] & 15) << 4], axis=1).astype(np.uint8)
    fours = ((q & 15)[:, 0::2] | (q & 15)[:, 1::2] << 4).astype(np.uint8)
    fifth = [np.sum((q >> 4) << np.arange(8, dtype=np.uint32)[:, None], axis=1).astype(np.uint8)] if bits == 5 else []
    raw = _raw(d.astype(np.float16), dmin.astype(np.float16), packed, *fifth, fours)
    return Encoded(raw, values.reshape(len(x), 256))


def _q6_k(x: np.ndarray) -> Encoded:
    parts = x.reshape(-1, 16, 16)
    scale = _extreme(parts)[..., 0] / -32
    d = _halves(_extreme(scale) / -128)
    sc = np.clip(np.rint(_quotients(scale, d)), -128, 127)
    factor = (d * sc)[..., None]
    q = np.clip(np.rint(_quotients(parts, factor)), -32, 31)
    codes = (q + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    fours = (codes & 15)[:, :, :2] | (codes & 15)[:, :, 2:] << 4
    twos = codes >> 4
    twos = twos[:, :, 0] | twos[:, :, 1] << 2 | twos[:, :, 2] << 4 | twos[:, :, 3] << 6
    return Encoded(_raw(fours, twos, sc.astype(np.int8), d.astype(np.float16)), (factor * q).reshape(len(x), 256))


class Type(NamedTuple):
    number: int
    block: int  # values
    encode: Callable[[np.ndarray], Encoded]

    @property
    def quantised(self) -> bool:
        return self.block > 1


def _plain(dtype: str) -> Callable[[np.ndarray], Encoded]:
    def encode(x: np.ndarray) -> Encoded:
        raw = tensor_files.encode(x, dtype)
        return Encoded(raw, tensor_files.decode(raw, dtype).astype(np.float32).reshape(x.shape))
    return encode


TYPES: Dict[str, Type] = {
    "F32": Type(0, 1, _plain("F32")), "F16": Type(1, 1, _plain("F16")), "BF16": Type(30, 1, _plain("BF16")),
    "Q8_0": Type(8, 32, _q8_0),
    "Q4_0": Type(2, 32, lambda x: _centred(x, 4)), "Q5_0": Type(6, 32, lambda x: _centred(x, 5)),
    "Q4_1": Type(3, 32, lambda x: _with_minimum(x, 4)), "Q5_1": Type(7, 32, lambda x: _with_minimum(x, 5)),
    "Q4_K": Type(12, 256, lambda x: _parts_of_32(x, 4)), "Q5_K": Type(13, 256, lambda x: _parts_of_32(x, 5)),
    "Q6_K": Type(14, 256, _q6_k)}

_OUTSIDE = {"emb.weight": "token_embd.weight", "head.weight": "output.weight", "blocks.0.ln0": "token_embd_norm",
            "ln_out": "output_norm"}
_INSIDE = {"ln1": "attn_norm", "ln2": "attn_norm_2", "att.ln_x": "time_mix_ln", "att.time_maa_x": "time_mix_lerp_x",
           "att.time_decay": "time_mix_decay", "att.time_faaaa": "time_mix_first", "ffn.x_k": "channel_mix_lerp_k",
           "ffn.time_maa_k": "channel_mix_lerp_k", "ffn.time_maa_r": "channel_mix_lerp_r"}
_FUSED = {"rwkv7": ["x_r", "x_w", "x_k", "x_v", "x_a", "x_g"],
          "rwkv6": ["time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"]}
_TRANSPOSED = re.compile(r"att\.([wavg][12]|time_maa_w[12]|time_decay_w[12])$")
_NEVER_QUANTISED = re.compile(r"time_mix_(first|lerp.*|decay.*|[wavg][012]|r_k|k_k|k_a)\.weight")


def _gguf_name(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    if ending not in ("weight", "bias"):
        stem, dot, ending = name, ".", "weight"
    if name in _OUTSIDE or stem in _OUTSIDE:
        return _OUTSIDE.get(name) or _OUTSIDE[stem] + dot + ending
    _, layer, rest = stem.split(".", 2)
    rest = _INSIDE.get(rest) or rest.replace("att.", "time_mix_").replace("ffn.", "channel_mix_")
    rest = rest.replace("mix_time_maa_", "mix_").replace("mix_time_decay_", "mix_decay_")
    return f"blk.{layer}.{rest}{dot}{ending}"


class Converted(NamedTuple):
    tensors: List[Tuple[str, Tuple[int, ...], int, bytes]]  # name, shape, type, data
    meaning: Dict[str, np.ndarray]                          # original names, the values that the file stands for


def convert(model: Dict[str, np.ndarray], architecture: str, kind: str, rescale_every: int = 6,
            exact: bool = False) -> Converted:
    """The tensors of the file; matrices in `kind` where their rows are whole blocks, else in F16. Quantised values are rounded
    to fp16; with `exact` only those of the embeddings."""
    tensors: List[Tuple[str, Tuple[int, ...], int, bytes]] = []
    meaning: Dict[str, np.ndarray] = {}
    fused: Dict[str, Dict[str, np.ndarray]] = {}

    def put(name: str, x: np.ndarray) -> np.ndarray:
        used = "F32"
        if x.ndim >= 2 and x.shape[0] > 1 and "lerp" not in name and "first" not in name:
            used = kind
            if TYPES[kind].quantised and (_NEVER_QUANTISED.search(name) or x.shape[-1] % TYPES[kind].block):
                used = "F16"
        type_ = TYPES[used]
        encoded = type_.encode(np.ascontiguousarray(x, np.float32).reshape(-1, type_.block) if type_.quantised else x)
        tensors.append((name, x.shape, type_.number, encoded.raw))
        rounds = type_.quantised and (not exact or name == "token_embd.weight")
        values = encoded.values.astype(np.float16).astype(np.float32) if rounds else encoded.values
        return values.reshape(x.shape)

    for name, x in model.items():
        x = np.asarray(x, np.float32)
        shape, last = x.shape, name.rpartition(".")[2]
        if ".att." in name and last in _FUSED[architecture]:
            block = name.split(".")[1]
            rows = fused.setdefault(block, {})
            rows[last] = x.reshape(-1)
            meaning[name] = x
            if len(rows) == len(_FUSED[architecture]):
                put(f"blk.{block}.time_mix_lerp_fused.weight",
                    np.stack([rows[each] for each in _FUSED[architecture]]).reshape(len(rows), 1, 1, -1))
            continue
        factor = 1.0
        if architecture == "rwkv6" and name.endswith(("att.output.weight", "ffn.value.weight")) and rescale_every:
            factor = 2.0 ** (int(name.split(".")[1]) // rescale_every)
        if transposed := bool(_TRANSPOSED.search(name)):
            x = x.swapaxes(-1, -2)
        elif not name.endswith("weight") and not name.endswith("time_faaaa"):
            x = x.reshape(-1)
        if architecture == "rwkv7" and re.fullmatch(r"blocks\.0\.att\.v[012]", name):
            continue
        values = put(_gguf_name(name), x / np.float32(factor)) * np.float32(factor)
        meaning[name] = values.swapaxes(-1, -2) if transposed else values.reshape(shape)
        if architecture == "rwkv7" and re.fullmatch(r"blocks\.0\.att\.a[012]", name):
            put(f"blk.0.time_mix_v{last[1]}.weight", x)
    return Converted(tensors, meaning)


def _string(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value.encode())
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value[0], bytes):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
    return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def _vocabulary(tokens: Dict[int, bytes], rows: int) -> Dict[str, Any]:
    """Escaped as by the converter: the inside of Python's bytes literals."""
    texts = [b"<s>"] + [repr(tokens[i])[2:-1].encode() for i in range(1, len(tokens) + 1)]
    types = [3] + [1] * len(tokens)
    for i in range(len(texts), rows):
        texts.append(f"[PAD{i}]".encode())
        types.append(5)
    return {"tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0, "tokenizer.ggml.eot_token_id": 261,
            "tokenizer.chat_template": "rwkv-world"}


def write(path: pathlib.Path, model: Dict[str, np.ndarray], kind: str,
          vocabulary: Optional[Dict[int, bytes]] = None, rescale_every: int = 6,
          exact: bool = False) -> Dict[str, np.ndarray]:
    """Returns what the file means, by original names."""
    architecture = "rwkv7" if "blocks.0.att.r_k" in model else "rwkv6"
    heads = model["blocks.0.att.r_k" if architecture == "rwkv7" else "blocks.0.att.time_faaaa"]
    layers = 1 + max(int(name.split(".")[1]) for name in model if name.startswith("blocks."))
    rows, width = model["emb.weight"].shape
    keys: Dict[str, Any] = {"general.architecture": architecture, "general.type": "model", "general.name": "test"}
    own: Dict[str, Any] = {"context_length": 1048576, "embedding_length": width, "block_count": layers,
                           "feed_forward_length": model["blocks.0.ffn.key.weight"].shape[0],
                           "attention.head_count": 0, "attention.layer_norm_epsilon": 1e-5, "wkv.head_size": heads.shape[1]}
    if architecture == "rwkv6":
        own.update({"rescale_every_n_layers": rescale_every, "time_mix_extra_dim": model["blocks.0.att.time_maa_w1"].shape[1] // 5,
                    "time_decay_extra_dim": model["blocks.0.att.time_decay_w1"].shape[1]})
    else:
        later = f"blocks.{min(1, layers - 1)}.att."
        own.update({f"attention.{long}_lora_rank": model[later + short].shape[1] for long, short in
                    (("decay", "w1"), ("iclr", "a1"), ("value_residual_mix", "v1"), ("gate", "g1"))})
    keys.update({f"{architecture}.{key}": value for key, value in own.items()})
    keys.update(_vocabulary(vocabulary, rows) if vocabulary else {})
    converted = convert(model, architecture, kind, rescale_every, exact)
    out = b"GGUF" + struct.pack("<IQQ", 3, len(converted.tensors), len(keys))
    out += b"".join(_string(key.encode()) + _value(value) for key, value in keys.items())
    offset = 0
    for name, shape, number, raw in converted.tensors:
        out += _string(name.encode()) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], number, offset)
        offset += (len(raw) + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(out + bytes(-len(out) % 32))
        for *_, raw in converted.tensors:
            file.write(raw + bytes(-len(raw) % 32))
    return converted.meaning


if __name__ == "__main__":
    source, target, type_name, *rest = sys.argv[1:]
    write(pathlib.Path(target), dict(tensor_files.read_tensors(source)), type_name,
          world_tokenizer.load_vocab(rest[0]) if rest else None)
