// Package pmi is the client's side of PMI-1 and PMI-2, by which a process manager such as srun
// --mpi=pmi2 or mpiexec.hydra tells the processes it has started who they are, and has them
// exchange addresses.
//
// There is no library for it in Go. Everything that comes from a process manager is bounded and
// checked.
//
// The wire, as both process managers speak it (MPICH 4.0's hydra and Slurm 22.05's mpi/pmi2):
//
//   - Both versions begin with lines: cmd=init pmi_version=V pmi_subversion=S, answered by
//     cmd=response_to_init with the server's version and rc=0.
//   - PMI-1 goes on with lines of key=value, separated by blanks: so values have no blanks. A value
//     may have = in it.
//   - PMI-2 goes on with messages: six bytes with the length of the rest, which hydra fills up with
//     blanks before the digits and Slurm with blanks behind them, and then key=value; for each
//     field. The standard doubles ; in values, which hydra does not undo: values that have one are
//     refused here.
//   - Slurm says appnum=-1 in PMI-1 where there is one program only; that is 0 here.
//   - Where PMI_PORT (host:port) is there instead of the number of a descriptor in PMI_FD, the
//     process connects, says cmd=initack pmiid=PMI_ID, and gets cmd=initack and three lines of
//     cmd=set, with size, rank and debug.
package pmi
