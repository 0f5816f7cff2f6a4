#!/usr/bin/env python3
"""Shows that the running server computes what the reference does, for the goldens of every version, in fp32, bf16 and fp16: all
cases of a model are sent at once as token prompts, with echo and logprobs; the log-probabilities of all positions and
the greedy transcripts are compared. Ticks of 64 tokens cut the longer prompts while others decode."""
import unittest
from functools import partial
from typing import Dict, List

from golden_data import MODELS, OTHER_FILES, TOLERANCE, Case, LargestErrors, Model, cases, names_of_tokens, np
from program import Server, at_once

errors = LargestErrors()


def tearDownModule() -> None:
    errors.print()


def score(server: Server, case: Case) -> List[float]:
    [choice] = server.completion(prompt=case.tokens, echo=True, logprobs=0, max_tokens=0)
    return choice["logprobs"]["token_logprobs"]


def transcribe(server: Server, case: Case) -> Dict[str, list]:
    [choice] = server.completion(prompt=case.tokens[:case.prompt_len], logprobs=0, temperature=0, ignore_eos=True,
                                 max_tokens=len(case.tokens) - case.prompt_len)
    return choice["logprobs"]


def certain_tokens(case: Case, permitted: float) -> int:
    """How many generated tokens can be judged: up to the first position with a small margin either may be right."""
    margins = case.margin[case.prompt_len - 1:-1]
    return next((i for i, margin in enumerate(margins) if margin <= 2 * permitted), len(margins))


class ServedGoldens(unittest.TestCase):
    def compare(self, model: Model, dtype: str, case: Case, what: str, got: List[float], want: List[float]) -> None:
        self.assertEqual(len(got), len(want))
        if not want:
            return
        error = float(np.abs(np.array(got) - want).max())
        errors.note(model.name, dtype, what, error / case.largest)
        # A log-probability is off by at most twice what its logits are; printed with 6 digits.
        self.assertLess(error, 2 * TOLERANCE[dtype] * case.largest + 1e-6)

    def serve_goldens(self, model: Model, dtype: str) -> int:
        """Compares all cases; returns how many tokens of the greedy transcript were certain."""
        ids = names_of_tokens(model)
        all_cases = list(cases(model))
        [greedy] = [case for case in all_cases if case.prompt_len]
        certain = certain_tokens(greedy, TOLERANCE[dtype] * greedy.largest)
        with Server(model.served_path, model.vocab, "engine.slots=4", "engine.max_tick_tokens=64",
                    "engine.prefill_chunk_tokens=40", dtype=dtype) as server:
            *scored, transcript = at_once([*(partial(score, server, case) for case in all_cases),
                                           partial(transcribe, server, greedy)])
        for case, got in zip(all_cases, scored):
            with self.subTest(model=model.name, dtype=dtype, case=case.name):
                self.assertIsNone(got[0])
                self.compare(model, dtype, case, "logprobs of the prompt", got[1:], case.logprob_next)
        with self.subTest(model=model.name, dtype=dtype, case="greedy transcript"):
            generated = [ids[name] for name in transcript["tokens"]]
            self.assertEqual(generated[:certain], greedy.tokens[greedy.prompt_len:][:certain])
            self.compare(model, dtype, greedy, "logprobs of sampled tokens", transcript["token_logprobs"][:certain],
                         greedy.logprob_next[greedy.prompt_len - 1:][:certain])
        return certain

    def test_logprobs_and_transcripts_are_the_reference_s(self) -> None:
        certain = {dtype: sum(self.serve_goldens(model, dtype) for model in MODELS) for dtype in TOLERANCE}
        print(f"\ntokens of greedy transcripts that could be judged: {certain}")
        self.assertGreater(certain["fp32"], 40 * len(MODELS))

    def test_other_files_of_the_same_numbers(self) -> None:
        for others in OTHER_FILES.values():
            for model in others:
                self.serve_goldens(model, "fp32")


if __name__ == "__main__":
    unittest.main()
