// Package spawn has what nodes decide about MPI_Comm_spawn (MPI-4.1, 11.8): whether a request
// is in order, which site and host starts which of its procs ([Job.Plan]), how the slots of a
// site are shared among spawned worlds ([Slots]), and who is told what when a spawned world or
// the world of its parents ends ([Worlds]).
//
// It starts nothing and has no clock: nodes and the simulator tell it what has happened and
// when, and do what it says.
package spawn
