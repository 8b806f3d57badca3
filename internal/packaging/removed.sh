#!/bin/sh
# Before the files go: what runs of them ends, unless this is an upgrade (Debian says so in a word, RPM by a
# number).
case "$1" in upgrade | 1) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
  systemctl stop impi-names.service 'impi-server@*.service' || true # disable --now would take no pattern
  systemctl --no-reload disable impi-names.service || true
fi
