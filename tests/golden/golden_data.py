"""The golden data: which models there are, what the float64 reference answers for them, and how far an answer may be
from it. Importing this ends the test as skipped (exit code 77) where the oracle folder or numpy is missing.

SKEIN_ORACLE names the folder, else it is ../shared/oracle beside the project; its README defines the tolerances.
SKEIN_GOLDEN_MODELS names the folder that make_models.py has filled.
"""
import json
import os
import pathlib
import sys
from typing import Dict, Iterator, List, NamedTuple, Optional

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


ORACLE = pathlib.Path(os.environ.get("SKEIN_ORACLE") or ROOT.parent / "shared/oracle")
if "SKEIN_ORACLE" not in os.environ and not ORACLE.is_dir():
    skip("no oracle folder: set SKEIN_ORACLE")
try:
    import numpy as np
except ImportError:
    skip(f"{sys.executable} has no numpy")

sys.dont_write_bytecode = True  # the oracle's folder is not ours to write to
sys.path.insert(0, str(ORACLE))
import tensor_files  # noqa: E402
import world_tokenizer  # noqa: E402

MADE = pathlib.Path(os.environ.get("SKEIN_GOLDEN_MODELS") or ROOT / "build/golden_models")
WORLD = ORACLE / "rwkv_vocab_v20230424.txt"

# Largest error by largest golden logit; of states: by the largest element of each array. The oracle permits fp32 1e-4
# and calls anything above 1e-5 a reason to look for a bug.
TOLERANCE = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2}


class Model(NamedTuple):
    name: str
    path: pathlib.Path
    golden: str                            # folder of its cases
    vocab: str                             # as --vocab takes it
    state: Optional[pathlib.Path] = None   # the tuned state that its cases start from
    served: Optional[pathlib.Path] = None  # for the server: the same checkpoint with that state inside

    @property
    def served_path(self) -> pathlib.Path:
        return self.served or self.path


def _of_oracle(file: str, golden: str) -> Model:
    return Model(file, ORACLE / "models" / file, golden, "bytes")


_numbered = str(MADE / "numbered_vocab.txt")
TINY = _of_oracle("tiny-7v0.safetensors", "tiny-7v0")
GEN_7 = Model("gen-7", MADE / "gen-7.safetensors", "gen-7", _numbered)
GEN_7_WORLD = Model("gen-7-world", MADE / "gen-7-world.safetensors", "gen-7-world", str(WORLD))
QUIRK = _of_oracle("quirk-base.safetensors", "quirk-base")
GEN_4, GEN_5, GEN_6 = (Model(name, MADE / f"{name}.safetensors", name, _numbered) for name in ("gen-4", "gen-5v2", "gen-6"))
TINY_6 = _of_oracle("tiny-6v0-fp16.pth", "tiny-6v0-fp16")
# Models of versions 4 to 6; cases of 5.1, whose model has no golden data, are made by make_models.py.
EARLIER = [_of_oracle("tiny-4v0.safetensors", "tiny-4v0"), _of_oracle("tiny-4v0-bf16.pth", "tiny-4v0-bf16"),
           _of_oracle("tiny-5v2.safetensors", "tiny-5v2"), _of_oracle("tiny-5v2-fp16.pth", "tiny-5v2-fp16"), TINY_6,
           GEN_4, GEN_5, GEN_6,
           *(Model(f"gen-5v1-{kind}", MADE / f"gen-5v1-{kind}.safetensors", str(MADE / f"golden-5v1-{kind}"), _numbered)
             for kind in ("gate", "log"))]
TUNED = [Model("state-tiny-6v0", TINY_6.path, "state-tiny-6v0", "bytes", ORACLE / "models/state-tiny-6v0.pth",
               MADE / "tiny-6v0-tuned.safetensors"),
         Model("state-gen-6", GEN_6.path, "state-gen-6", _numbered, ORACLE / "models/state-gen-6.pth",
               MADE / "gen-6-tuned.safetensors"),
         Model("state-tiny-7v0", TINY.path, "state-tiny-7v0", "bytes", ORACLE / "models/state-tiny-7v0.pth",
               MADE / "tiny-7v0-tuned.safetensors"),
         Model("state-gen-7", GEN_7.path, "state-gen-7", _numbered, ORACLE / "models/state-gen-7.pth",
               MADE / "gen-7-tuned.safetensors")]
MODELS = [TINY, GEN_7, GEN_7_WORLD, QUIRK, *EARLIER, *TUNED]
# The same numbers in other files: they must answer as the first of their kind.
OTHER_FILES = {TINY: [_of_oracle(f, "tiny-7v0") for f in ("tiny-7v0.pth", "tiny-7v0-bf16.pth")],
               QUIRK: [_of_oracle(f"quirk-{q}.pth", "quirk-base")
                       for q in ("metadata", "parameters", "views", "mixed", "torch2")]}


class Case:
    """What the reference answers to one list of tokens."""

    def __init__(self, stem: pathlib.Path) -> None:
        with open(stem.with_suffix(".json")) as file:
            about = json.load(file)
        raw = np.fromfile(stem.with_suffix(".bin"), dtype="<f4")
        self.name = stem.name
        self.tokens: List[int] = about["tokens"]
        self.positions: List[int] = about["positions"]  # of `logits`
        self.argmax: List[int] = about["argmax"]
        self.margin: List[float] = about["margin"]      # best minus second-best logit
        self.logprob_next: List[float] = about["logprob_next"]
        self.split: Optional[int] = about["split"]
        self.prompt_len: Optional[int] = about.get("prompt_len")  # of the kind greedy
        self.arrays: Dict[str, np.ndarray] = {}
        for name, array in about["arrays"].items():
            first = array["offset"] // 4
            count = int(np.prod(array["shape"]))
            self.arrays[name] = raw[first:first + count].reshape(array["shape"]).astype(np.float64)
        self.logits = self.arrays["logits"]
        self.largest = float(np.abs(self.logits).max())

    def state(self, prefix: str) -> Dict[str, np.ndarray]:
        """The arrays of "state/" or "state_at_<k>/", by name."""
        return {name[len(prefix):]: array for name, array in self.arrays.items() if name.startswith(prefix)}


def comparable(state: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """Version 4: how the sums are grouped decides pp, so aa / bb and the logarithm of the whole denominator count."""
    out = dict(state)
    for name in [name for name in state if name.endswith(".aa")]:
        aa, bb, pp = (out.pop(name[:-2] + part) for part in ("aa", "bb", "pp"))
        out[name[:-2] + "mean"], out[name[:-2] + "weight"] = aa / bb, pp + np.log(bb)
    return out


def cases(model: Model) -> Iterator[Case]:
    for path in sorted((ORACLE / "golden" / model.golden).glob("*.json")):
        yield Case(path.with_suffix(""))


def names_of_tokens(model: Model) -> Dict[str, int]:
    """From a token as the server writes it under logprobs to its id."""
    if model.vocab == "bytes":
        texts = {byte: bytes([byte]) for byte in range(256)}
    else:
        texts = world_tokenizer.load_vocab(model.vocab)

    def name(text: bytes) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in text)

    return {name(text): token for token, text in texts.items()}


class LargestErrors:
    """The largest error by model, dtype and what was compared; printed as the rows of a table."""

    def __init__(self) -> None:
        self._rows: Dict[tuple, List[float]] = {}

    def note(self, model: str, dtype: str, what: str, error: float) -> None:
        row = self._rows.setdefault((model, dtype, what), [0.0, 0])
        row[0] = max(row[0], error)
        row[1] += 1

    def print(self) -> None:
        print("\n| model | dtype | compared | cases | largest error | allowed |\n|---|---|---|---|---|---|")
        for (model, dtype, what), (error, count) in sorted(self._rows.items()):
            print(f"| {model} | {dtype} | {what} | {count} | {error:.1e} | {TOLERANCE[dtype]:.0e} |")
