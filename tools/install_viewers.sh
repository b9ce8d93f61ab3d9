#!/usr/bin/env bash
# Installs what the tests open exports with, besides Python packages: Chromium, and speedscope into DIRECTORY.
# Usage: install_viewers.sh DIRECTORY. What cannot be installed is said, and its tests are left out.
set -u
directory=$1

apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  apt-get install -qq -y "$@" >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y "$@"; } >/dev/null 2>&1
}

missing() {
  echo "note: $1 could not be installed; tests that need it are left out"
}

command -v chromium >/dev/null || apt_install chromium || missing chromium
command -v npm >/dev/null || apt_install npm || missing npm
if command -v npm >/dev/null && [ ! -d "$directory/node_modules/speedscope" ]; then
  mkdir -p "$directory"
  timeout 120 npm install --silent --no-audit --no-fund --prefix "$directory" speedscope@1 || missing speedscope
fi
