#!/usr/bin/env bash
# Checks and measures Skein on the GPU of this machine, NVIDIA's or AMD's, and writes one file to send:
#   bench/gpu/run.sh [FILE.tar.gz]         (default: skein-gpu-DATE.tar.gz in this folder)
# It takes the program of this repository (built first if it is not there, for this GPU), of the bundle around it, or the
# one that is installed. Correctness needs nothing else: what the GPU computes is compared with what the CPU computes.
# Speed is measured with random weights, of the sizes for which the card and the disk have room. Takes 5 to 20 minutes.
# The file has the report, the raw figures, all messages, and the name and driver of the card; nothing about you.
# Exit status: 0 correct, 1 wrong (send the file anyway), 69 no GPU that Skein can use, 73 FILE cannot be written.
#   SKEIN_BINARY=FILE            the program
#   SKEIN_DEVICE=hip:1           the GPU; default: the first one
#   SKEIN_SIZES="0.4b 1.5b"      sizes of the random models; default: 0.4b 1.5b 7.2b, as far as there is room
#   SKEIN_MODELS=/dev/shm        folder for them, removed afterwards
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
file=$(realpath -m "${1:-skein-gpu-$(date -u +%Y%m%d-%H%M).tar.gz}")

if ! touch "$file" 2>/dev/null; then
  echo "run.sh: cannot write $file" >&2
  exit 73
fi
rm -f "$file"

program=${SKEIN_BINARY:-}
if [[ ! $program && -x $root/dev ]]; then
  [[ -x $root/build/here/skein ]] || "$root/dev" build here
  program=$root/build/here/skein
elif [[ ! $program && -x $root/skein ]]; then
  program=$root/skein
elif [[ ! $program ]]; then
  program=$(command -v skein) || {
    echo "run.sh: there is no program skein: neither in $root nor installed" >&2
    exit 69
  }
fi

out=$(mktemp -d)
models=
trap 'rm -rf "$out" ${models:+"$models"}' EXIT
mkdir "$out/skein-gpu"
log=$out/skein-gpu

# The first device that answers. What the others say is the answer to why there is none.
device=
for candidate in ${SKEIN_DEVICE:-cuda hip}; do
  if "$program" generate --device "$candidate" --prompt 'User: Hi' --max-tokens 4 >"$log/first-$candidate.txt" 2>&1; then
    device=$candidate
    break
  fi
  tail -n 3 "$log/first-$candidate.txt" >&2
done
if [[ ! $device ]]; then
  echo "run.sh: no GPU that Skein can use; nothing was measured, and no file was written" >&2
  exit 69
fi

{
  "$program" --version
  uname -sr
  grep -m 1 'model name' /proc/cpuinfo || true
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader 2>/dev/null || true
  grep -h '^gfx_target_version [1-9]' /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null || true
  cat /sys/class/drm/card*/device/product_name /sys/module/amdgpu/version /opt/rocm/.info/version 2>/dev/null || true
  ldconfig -p | grep -o 'libamdhip64\.so\.[0-9]*' | sort -u || true
} >"$log/system.txt"
paste -sd ';' "$log/system.txt" >"$log/gpu.txt"

# A folder with room for weights of $1 MB; none: fails.
folder_with_room() {
  local folder
  for folder in ${SKEIN_MODELS:-/dev/shm "${TMPDIR:-/tmp}" "$PWD"}; do
    if (($(df -Pm "$folder" 2>/dev/null | awk 'NR == 2 { print $4 }') > $1)); then
      echo "$folder"
      return
    fi
  done
  return 1
}

status=0
echo "checking $device: $(head -n 1 "$log/system.txt")"
python3 "$here/card_check.py" "$program" "$device" "$log/correctness.json" 2>&1 | tee "$log/check.txt" || status=1

declare -A megabytes=([0.1b]=500 [0.4b]=1200 [1.5b]=3500 [2.9b]=6500 [7.2b]=15500)
for size in ${SKEIN_SIZES-0.4b 1.5b 7.2b}; do
  if ! folder=$(folder_with_room "${megabytes[$size]:-30000}"); then
    echo "$size: no folder has room for its weights; left out" | tee -a "$log/left-out.txt"
    continue
  fi
  models=$(mktemp -d -p "$folder")
  echo "measuring random weights of size $size"
  "$program" bench engine --device "$device" --dtype fp16 --state-dtype fp16 --random "$size" \
    --random-file "$models/random.safetensors" --json "$log/bench-$size.json" 2>&1 | tee "$log/bench-$size.txt" ||
    echo "$size: did not run; left out" | tee -a "$log/left-out.txt"
  rm -rf "$models"
done

commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || "$program" --version | head -n 1)
python3 "$here/report.py" "$log" "$commit" || status=1
tar -czf "$file" -C "$out" skein-gpu
echo
((status == 0)) && echo "The GPU computes what the CPU computes." || echo "The GPU computes something else, or a check did not run: please send the file all the more."
echo "Result, to be sent: $file"
exit $status
