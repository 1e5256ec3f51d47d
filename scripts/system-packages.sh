#!/usr/bin/env bash
# Installs the system packages that the tests need: a real Redis and a real browser.
# As root on Debian or Ubuntu it installs what is missing; otherwise it stops with the exact command.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Installing system packages: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    # The package starts a server of its own; the tests start theirs on a free port.
    if command -v service >/dev/null; then service redis-server stop >/dev/null 2>&1 || true; fi
    exit 0
fi
echo "The tests need: ${missing[*]}. Install them with" >&2
echo "    sudo apt-get install -y ${missing[*]}" >&2
echo "(elsewhere: the packages of the same names), then run this again." >&2
exit 1
