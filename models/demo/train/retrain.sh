#!/usr/bin/env bash
# Trains the demo model further from its present checkpoint, judges it, and puts it in place.
#
#   retrain.sh train     needs an NVIDIA GPU, nvcc, PyTorch 2.11 and numpy: about SECONDS + 150 s
#   retrain.sh evaluate  through `skein serve`, on the CPU; the table goes to $OUT/table.md
#   retrain.sh install   copies the checkpoint, keeps its log as log-RUN.csv, and writes golden.json and loss.svg; needs
#                        PyTorch, no GPU
#
# Environment: OUT (folder of the run, build/demo), SECONDS_MAX (of training, 400), TOKENS (600e6), RATE (6e-4),
# PROCESSES (of the generator), SKEIN (the program, build/release/skein), PORT (8979), COUNT (instances of each ability,
# 200), PYTHON (python3), RUN (number of the run, 3 and more).
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../../.. && pwd)
OUT=$(realpath -m "${OUT:-$root/build/demo}")
PYTHON=${PYTHON:-python3}
vocabulary=../skein-demo.vocab.txt

train() {
  mkdir -p "$OUT"
  "$PYTHON" train.py --check --vocabulary "$vocabulary" --from ../skein-demo.safetensors --out "$OUT" --seed 3 \
    --seconds "${SECONDS_MAX:-400}" --by-time --tokens "${TOKENS:-600e6}" --lr "${RATE:-6e-4}" \
    ${PROCESSES:+--processes "$PROCESSES"} ${EVALUATE:+--evaluate "$EVALUATE"} 2>&1 | tee "$OUT/train.log"
}

evaluate() {
  local skein=${SKEIN:-$root/build/release/skein} port=${PORT:-8979}
  state=$(mktemp -d)  # not local: the trap reads it
  cp "$vocabulary" "$OUT/"
  "$skein" serve --model "$OUT/skein-demo.safetensors" --device cpu --port "$port" --state-dir "$state" >"$OUT/server.log" 2>&1 &
  server=$!
  trap 'kill $server; wait $server || true; rm -rf "$state"' EXIT
  until curl -sf "http://127.0.0.1:$port/health" >/dev/null; do
    kill -0 $server || { cat "$OUT/server.log"; exit 1; }
    sleep 0.2
  done
  "$PYTHON" check_tools.py --url "http://127.0.0.1:$port" --vocabulary "$vocabulary"
  "$PYTHON" evaluate.py --url "http://127.0.0.1:$port" --vocabulary "$vocabulary" --count "${COUNT:-200}" \
    --stories "${STORIES:-200}" | tee "$OUT/table.md"
}

install() {
  cp "$OUT/skein-demo.safetensors" ..
  "$PYTHON" golden.py ..
  cp "$OUT/log.csv" "log-${RUN:?}.csv"
  "$PYTHON" curve.py log.csv log-*.csv ../loss.svg  # all runs one after another; log.csv is that of the first two
}

case ${1:-} in
  train | evaluate | install) "$1" ;;
  *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
esac
