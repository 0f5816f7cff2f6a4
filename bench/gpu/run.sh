#!/usr/bin/env bash
# Checks correctness, then measures speed, on a machine with a GPU.
#   run.sh [FILE.tar.gz]
# For owners of a card that Skein has not run on: makes one file to send (see card.sh).
#   run.sh BUNDLE ORACLE OUT COMMIT [correctness|bench]
# BUNDLE: made by ./dev bundle; ORACLE: the folder of reference models and goldens; OUT: an empty or new folder.
# Writes OUT/gpu.json and OUT/gpu.md, and the logs they are made from. Put the newest into bench/results and their table
# into bench/RESULTS.md. Speed is measured only if all results are correct. Exit status: 0 correct, 1 wrong, 64 usage,
# 69 no GPU.
#   SKEIN_SIZES="7.2b 1.5b"      sizes of the random models to measure
#   SKEIN_DTYPE=fp16             type of their weights; released checkpoints have bf16
#   SKEIN_INVARIANCE=default     invariance for the speed: default, strict, fast
#   SKEIN_SANITIZER=1            also runs the kernel tests under memcheck and racecheck (sanitize.py; max. 9 minutes)
#   SKEIN_MODELS=/dev/shm        folder for the random models (14.4 GB for 7.2b)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if (($# < 2)) && [[ ${1:-} != -* ]]; then exec "$here/card.sh" "$@"; fi
if (($# < 4 || $# > 5)) || [[ ${5:-all} != @(all|correctness|bench) ]]; then
  sed -n '2,15s/^# \?//p' "$0" >&2
  exit 64
fi
bundle=$(cd "$1" && pwd) oracle=$(cd "$2" && pwd) commit=$4 part=${5:-all}
mkdir -p "$3"
out=$(cd "$3" && pwd)
models=${SKEIN_MODELS:-/dev/shm}
rm -f "$out"/*.json "$out"/gpu.md
trap 'rm -f "$models"/skein-random-*.$$.safetensors' EXIT

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader >"$out/gpu.txt" || {
  echo "run.sh: no GPU found" >&2
  exit 69
}

status=0
if [[ $part != bench ]]; then
  python3 "$here/correctness.py" "$bundle" "$oracle" "$out/correctness.json" || status=1
fi
if [[ $part != correctness && $status == 0 ]]; then
  for size in ${SKEIN_SIZES:-7.2b 1.5b}; do
    for state in fp32 fp16; do
      "$bundle/skein" bench engine --json "$out/bench-$size-$state.json" --device cuda --dtype "${SKEIN_DTYPE:-fp16}" \
        --state-dtype "$state" --invariance "${SKEIN_INVARIANCE:-default}" --random "$size" --random-file "$models/skein-random-$size.$$.safetensors" |
        tee "$out/bench-$size-$state.txt" || status=1
    done
    rm -f "$models/skein-random-$size.$$.safetensors"
  done
fi
python3 "$here/report.py" "$out" "$commit" || status=1
exit $status
