#!/usr/bin/env bash
# Makes a virtual environment that can build bragg. Usage: make_venv.sh DIRECTORY VERSION... (the first version found is taken)
# What the system lacks is installed with apt where that is possible; otherwise the message says what to install.
set -eu
directory=$1
shift
here=$(dirname "$0")

install() {
  echo "Installing $* with apt" >&2
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "error: $* is missing. Install it, then run make again." >&2
    exit 1
  fi
  apt-get install -qq -y "$@" >&2 || { apt-get update -qq >&2 && apt-get install -qq -y "$@" >&2; }
}

command -v g++ >/dev/null || install g++
python=$("$here/find_python.sh" "$@") || { install python3-dev python3-venv && python=$("$here/find_python.sh" "$@"); }
if ! "$python" -m venv --clear "$directory" 2>/dev/null; then  # Debian keeps ensurepip in a package of its own
  if command -v uv >/dev/null; then
    uv venv -q --clear --seed --python "$python" "$directory"
  else
    install python3-venv
    "$python" -m venv --clear "$directory"
  fi
fi
"$directory/bin/python" -m pip install -q "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.22" "ninja>=1.11"
