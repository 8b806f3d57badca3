# Runs a program without anybody at the keyboard, and says where it fell: impiexec -gdb.
set confirm off
set pagination off
set width 0
set print thread-events off
handle SIGURG SIGPIPE nostop noprint pass
run
if $_isvoid($_exitcode)
  echo \n
  thread apply all backtrace 64
  set $impi_status = 1
  if ! $_isvoid($_siginfo)
    set $impi_status = 128 + $_siginfo.si_signo
  end
  kill
  quit $impi_status
end
quit $_exitcode
