#!/usr/bin/env bash
# Makes sure that there is npm, which builds and tests the viewer. Exits with 1 where it cannot be installed.
set -u
command -v npm >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -qq -y npm >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y npm; } >/dev/null 2>&1
fi
command -v npm >/dev/null && exit 0
echo "note: npm is missing and could not be installed; the viewer is neither tested nor built" >&2
exit 1
