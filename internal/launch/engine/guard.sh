# Runs one program on a machine for an engine, which is at the other end of standard input, output and
# error. Set before: mark, which begins what the engine is told; dir, the working folder; grace, in
# seconds; sweep, 1 if nobody else kills what the program leaves behind; and the program with its
# arguments as $1, $2, ...
#
# Standard input has the secret in its first line, and then nothing. Its end says that the engine is
# gone: the program is asked to end, and killed after the grace.
tell() { printf '\036%s %s\n' "$mark" "$1"; }
unset secret reader
exec 3<&0 </dev/null
IFS= read -r secret <&3 || exit 64
trap : HUP INT QUIT USR1 USR2 ALRM TERM # which the program gets as if there were no trap
tell "here $IMPI_MACHINE_INDEX"
tell "here $IMPI_MACHINE_INDEX" >&2
if [ -n "$dir" ] && ! cd "$dir"; then
  tell folder >&2
  exit 65
elif ! command -v "$1" >/dev/null; then
  tell missing >&2
  exit 66
fi
tell up >&2
exec 4>&2 5>&1 2>/dev/null # the shell itself does not say how processes ended
# Ignored until each half of the pipe says otherwise: a shell's traps are not those of its halves, and a signal
# that comes before the second one has its own would end it, and nobody would tell of the program.
trap '' HUP INT QUIT USR1 USR2 ALRM TERM
{
  trap '' HUP INT QUIT USR1 USR2 ALRM TERM
  sh -c 'echo $PPID' # the number of this very process, which $$ is not
  printf '%s\n' "$secret"
  secret=
  while IFS= read -r nothing <&3; do :; done
  exec >&- # the end of the program's standard input, too
  kill -s TERM 0
  sleep "$grace"
  tell 'end 137' >&5
  tell 'end 137' >&4
  sleep 1 # srun drops what it has not read when all of a step is killed
  kill -s KILL 0
} | {
  trap : HUP INT QUIT USR1 USR2 ALRM TERM
  secret=
  IFS= read -r reader
  exec 3<&-
  "$@" 2>&4 4>&- 5>&-
  status=$?
  # Before the end is told: the engine's answer would make the reader start a sleep, which outlives it,
  # and Slurm waits a second if it finds a process of the step.
  kill -s KILL "$reader"
  tell "end $status" >&5
  tell "end $status" >&4
  [ "$sweep" != 1 ] || kill -s KILL 0
}
