#!/usr/bin/env bash
# Prints a CPython of the first version that is there, with its C headers. Usage: find_python.sh 3.11 3.12 ...
# Looks on PATH, then at pyenv's and uv's installations. Prints nothing and fails when there is none.
set -u

usable() {  # usable VERSION PROGRAM: it runs (a pyenv shim may not), has that version and can build extensions
  "$2" - "$1" >/dev/null 2>&1 <<'PYTHON'
import os, sys, sysconfig
version = f"{sys.version_info.major}.{sys.version_info.minor}"
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (version == sys.argv[1] and os.path.exists(header)))
PYTHON
}

for version in "$@"; do
  for program in "python$version" python3 "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python \
    "$(uv python find --no-python-downloads "$version" 2>/dev/null)"; do
    if [ -n "$program" ] && usable "$version" "$program"; then
      "$program" -c 'import sys; print(sys.executable)'
      exit 0
    fi
  done
done
exit 1
