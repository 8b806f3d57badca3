#!/bin/sh
# The group that may read certificates of servers has to be there before a unit starts, and systemd has to
# read the units anew, where it runs. After an upgrade the server of names is started again, if it runs: nodes
# publish their names again within seconds. Servers of jobs end with these, as the program that they were.
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers impi.conf || true
elif command -v groupadd >/dev/null 2>&1 && ! grep -q '^impi:' /etc/group; then
  groupadd --system impi || true
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  systemctl try-restart impi-names.service || true
fi
