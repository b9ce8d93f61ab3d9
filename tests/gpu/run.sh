#!/usr/bin/env bash
# What a machine with a GPU can tell, in about nine minutes. Usage: tests/gpu/run.sh DIRECTORY
#
# Needs Python with PyTorch, Triton, numpy, click, rich, pytest, scikit-build-core and nanobind, and CMake, ninja and a C++
# compiler; no network. Every step has its own time limit, and a failure does not keep the next from running. Leaves in
# DIRECTORY: install.log, doctor.txt, pytest.log, training.bragg, training.txt, debug_cases.npz, buffers.tar.gz,
# benchmarks.json, benchmarks.md.
set -u
out=$(realpath -m "${1:?usage: run.sh DIRECTORY}")
python=${PYTHON:-python3}
limit_s=${LIMIT_S:-540}
mkdir -p "$out"
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

step() {  # step NAME SECONDS COMMAND...: runs at most that long, and says how it went
  local name=$1 seconds=$2 code=0
  shift 2
  timeout --kill-after=10 "$seconds" "$@" || code=$?
  [ "$code" = 0 ] || failed=1
  echo "== $name: exit code $code after ${SECONDS} s in all"
}

logged() {  # logged FILE COMMAND...: output to a file, its end to the terminal
  local file=$1
  shift
  "$@" >"$file" 2>&1
  local code=$?
  tail -n 25 "$file"
  return "$code"
}
export -f logged

step install 150 bash -c 'logged "$@"' - "$out/install.log" "$python" -m pip install -v --no-build-isolation --no-deps \
  --no-index --target "$scratch/site" .
export PYTHONPATH="$scratch/site${PYTHONPATH:+:$PYTHONPATH}"

step doctor 30 bash -c 'logged "$@"' - "$out/doctor.txt" "$python" -m bragg doctor --all
# The settings of tests/conftest.py are of no use here and need packages that are not.
step tests 170 bash -c 'logged "$@"' - "$out/pytest.log" "$python" -m pytest -m cuda tests/gpu --confcutdir=tests/gpu \
  -p no:cacheprovider --durations=10
step main-job 40 "$python" -m bragg run --force -o "$out/training.bragg" tests/gpu/programs/training.py
step view 10 bash -c 'logged "$@"' - "$out/training.txt" "$python" -m bragg view "$out/training.bragg"
# The table that tests/unit/debug/test_golden_cases.py compares the debugger with; commit it as tests/golden/debug_cases.npz.
step golden 90 bash -c 'logged "$@"' - "$out/golden.log" "$python" -m tests.gpu.golden_cases "$out/debug_cases.npz"
step buffers 40 "$python" tests/gpu/record_buffers.py "$scratch/buffers"
tar -C "$scratch" -czf "$out/buffers.tar.gz" buffers
left_s=$((limit_s - SECONDS))
step benchmarks "$((left_s + 5))" "$python" benchmarks/run_all.py --out "$out" --limit "$left_s"
exit "$failed"
