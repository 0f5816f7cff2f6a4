#!/usr/bin/env python3
"""Shows that GGUF files of the trained and the random models, in each type, compute what their numbers say: the same bytes as
a .safetensors file with these numbers and original names. F32 files compute the bytes of the original checkpoint. Quantised
trained models keep the mean log-probability of the next token. The vocabulary inside is the one that was written."""
import pathlib
import struct
import subprocess
import tempfile
import unittest

import gguf_files
from golden_data import GEN_6, GEN_7, GEN_7_WORLD, TINY, TINY_6, WORLD, cases, np, tensor_files, world_tokenizer
from logits_test import log_probabilities_of_next
from program import BINARY, ENVIRONMENT, logits

# Of the mean log-probability, as a share of it.
PERMITTED = {"Q8_0": 0.003, "Q6_K": 0.01, "Q5_0": 0.015, "Q5_1": 0.015, "Q5_K": 0.015, "Q4_0": 0.04, "Q4_1": 0.04, "Q4_K": 0.04}


def inspected(model: pathlib.Path, *options: str) -> dict:
    done = subprocess.run([BINARY, "inspect", model, *options], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return {key: value.strip() for key, _, value in (line.partition(" ") for line in done.stdout.splitlines())}


class GgufFiles(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.gguf, self.plain = pathlib.Path(folder.name, "model.gguf"), pathlib.Path(folder.name, "model.safetensors")

    def test_each_type_computes_what_its_numbers_say(self) -> None:
        print("\n| model | type | mean log-probability | of the reference | permitted |\n|---|---|---|---|---|")
        for model in (TINY, GEN_7, TINY_6, GEN_6):
            original = dict(tensor_files.read_tensors(str(model.path)))
            named = {case.name: case for case in cases(model)}
            case = named["text-300"] if model in (TINY, TINY_6) else named["random-064"]
            for kind in gguf_files.TYPES:
                with self.subTest(model=model.name, type=kind):
                    meaning = gguf_files.write(self.gguf, original, kind)
                    tensor_files.write_safetensors(str(self.plain), meaning)
                    got = logits(self.gguf, case.tokens, "fp32", 64, 2)
                    self.assertTrue(got == logits(self.plain, case.tokens, "fp32", 64, 2))
                    if kind == "F32":
                        self.assertTrue(got == logits(model.path, case.tokens, "fp32", 64, 2))
                    if kind not in PERMITTED or model in (GEN_7, GEN_6):
                        continue
                    rows = np.frombuffer(got.logits, "<f4").reshape(len(case.tokens), -1).astype(np.float64)
                    mean = float(log_probabilities_of_next(rows, np.array(case.tokens)).mean())
                    expected = float(np.mean(case.logprob_next))
                    permitted = PERMITTED[kind] * abs(expected)
                    print(f"| {model.name} | {kind} | {mean:.4f} | {expected:.4f} | {permitted:.3f} |")
                    self.assertLess(abs(mean - expected), permitted)

    def test_codes_and_scales_of_the_file_are_used(self) -> None:
        for model in (TINY, GEN_7, TINY_6, GEN_6):
            original = dict(tensor_files.read_tensors(str(model.path)))
            named = {case.name: case for case in cases(model)}
            case = named["text-064"] if model in (TINY, TINY_6) else named["random-064"]
            for kind, name in (("Q8_0", "int8-32"), ("Q4_0", "int4-32")):
                with self.subTest(model=model.name, type=kind):
                    tensor_files.write_safetensors(str(self.plain), gguf_files.write(self.gguf, original, kind, exact=True))
                    exact = logits(self.plain, case.tokens, "fp32", 64, 2)
                    matrices = f"att.*={name},ffn.*={name},head={name}"
                    rows = np.frombuffer(exact.logits, "<f4")

                    def off(dtype: str, weight_format: str = "") -> float:
                        got = logits(self.gguf, case.tokens, dtype, 64, 2, weight_format=weight_format)
                        return np.abs(np.frombuffer(got.logits, "<f4") - rows).max() / np.abs(rows).max()

                    of_file, again, by_default = off("fp32", matrices), off("fp32", matrices.replace("-32", "")), off("auto")
                    print(f"| {model.name} | {kind} | {of_file:.1e} | {again:.1e} | {by_default:.1e} |")
                    self.assertLess(of_file, 5e-4)  # activations are rounded to 16-bit integers
                    self.assertGreater(again, 4 * of_file)  # quantised once more
                    self.assertLess(by_default, 5e-3)  # what is not quantised in the file is rounded to fp16

    def test_a_conversion_keeps_codes_and_scales(self) -> None:
        """Also scales that were divided by a power of two, and types that are decoded (K blocks need wider rows)."""
        for model, every in ((TINY, 6), (TINY_6, 1)):
            original = dict(tensor_files.read_tensors(str(model.path)))
            [case] = [case for case in cases(model) if case.name == "text-064"]
            for kind in ("Q8_0", "Q4_0", "Q5_1"):
                with self.subTest(model=model.name, type=kind):
                    gguf_files.write(self.gguf, original, kind, rescale_every=every)
                    subprocess.run([BINARY, "convert", self.gguf, self.plain, "--force"], env=ENVIRONMENT, check=True,
                                   capture_output=True)
                    as_file = "auto" if kind != "Q5_1" else "fp16"  # what is decoded stays so
                    self.assertTrue(logits(self.plain, case.tokens, "auto", 64, 2) ==
                                    logits(self.gguf, case.tokens, as_file, 64, 2))
                    self.assertEqual(inspected(self.plain)["identity"], inspected(self.gguf)["identity"])

    def test_rescaling_by_other_numbers_of_layers(self) -> None:
        original = dict(tensor_files.read_tensors(str(TINY_6.path)))
        [case] = [case for case in cases(TINY_6) if case.name == "text-064"]
        expected = logits(TINY_6.path, case.tokens, "fp32", 64, 2)
        for every in (0, 1, 5):
            gguf_files.write(self.gguf, original, "F32", rescale_every=every)
            self.assertTrue(logits(self.gguf, case.tokens, "fp32", 64, 2) == expected)

    def test_the_vocabulary_inside_is_the_file_s(self) -> None:
        original = dict(tensor_files.read_tensors(str(GEN_7_WORLD.path)))
        gguf_files.write(self.gguf, original, "Q8_0", world_tokenizer.load_vocab(str(WORLD)))
        inside, given = inspected(self.gguf), inspected(self.gguf, "--vocab", str(WORLD))
        self.assertEqual(inside["vocabulary"], "model.gguf")
        self.assertEqual(given["vocabulary"], WORLD.name)
        self.assertEqual(inside["identity"], given["identity"])  # covers the id and the bytes of each token
        self.assertEqual(inside["form"], "llama.cpp, rwkv7")

    def test_another_tokenizer_is_refused_by_name(self) -> None:
        gguf_files.write(self.gguf, dict(tensor_files.read_tensors(str(GEN_7_WORLD.path))), "F16",
                         world_tokenizer.load_vocab(str(WORLD)))
        raw, key = self.gguf.read_bytes(), b"tokenizer.ggml.model" + struct.pack("<IQ", 8, 4)
        self.gguf.write_bytes(raw.replace(key + b"rwkv", key + b"gpt2"))
        command = [BINARY, "generate", "--model", self.gguf, "--device", "cpu", "--max-tokens", "1", "--prompt", "a"]
        refused = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        self.assertIn("the tokenizer 'gpt2' inside", refused.stderr)
        self.assertNotEqual(refused.returncode, 0)
        given = subprocess.run([*command, "--vocab", str(WORLD)], env=ENVIRONMENT, capture_output=True, text=True)
        self.assertEqual(given.returncode, 0, given.stderr)


if __name__ == "__main__":
    unittest.main()
