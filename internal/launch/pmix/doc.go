// Package pmix is a process's side of PMIx, by which a process manager such as srun --mpi=pmix or
// Open MPI's mpirun tells the processes it has started who they are, and has them exchange
// addresses.
//
// PMIx has no wire that one could speak: its library, libpmix, and its server agree on that. It is
// loaded when a process manager that speaks PMIx has started the process, so that no program is
// linked to it and nothing of it is needed to build one. That needs cgo; without, Open refuses.
//
// What it declares is what versions 2 to 5 of PMIx have in common (abi.h).
package pmix
