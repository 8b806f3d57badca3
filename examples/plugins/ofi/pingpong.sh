#!/bin/sh
# What fi_pingpong (libfabric-bin) measures, as impi-bench reads it:
#
#   impi-bench -transport plugins/impi-transport-ofi -setting 'provider = "tcp"' -library './pingpong.sh tcp' pingpong stream
#
# It has no stream. What stands for one is how many bytes a message of its pingpong moves in the time that it
# takes one way.
set -eu
provider=$1 what=$2 seconds=$3
shift 3
port=$((20000 + $$ % 20000))
for size; do
  n=2000
  if [ "$size" -gt 100000 ]; then n=200; fi
  fi_pingpong -p "$provider" -e rdm -B $port -I $n -S "$size" >/dev/null 2>&1 &
  server=$!
  sleep 0.3
  line=$(fi_pingpong -p "$provider" -e rdm -P $port -I $n -S "$size" 127.0.0.1 2>/dev/null | tail -n 1)
  wait $server
  port=$((port + 1))
  echo "$line" | awk -v size="$size" -v what="$what" -v n=$n '{
    us = $7 # one way
    printf "{\"size\": %d, \"iterations\": %d, \"seconds\": %g}\n", size, n, what == "stream" ? n * 16 * us / 1e6 : n * 2 * us / 1e6
  }'
done
