// Package mpi is MPI for Go programs: ranks that send each other messages, one
// to one and all together, in one job that may span several sites.
//
//	func main() {
//		if err := mpi.Init(); err != nil {
//			log.Fatal(err)
//		}
//		world := mpi.World()
//		sum := make([]float64, 1)
//		if err := mpi.Allreduce(world, []float64{float64(world.Rank())}, sum, mpi.Sum); err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(world.Rank(), "of", world.Size(), "sum", sum[0])
//		if err := mpi.Finalize(); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// impi-node starts the procs of a program: impi-node -n 4 -- ./prog, or as a job
// file says. A program that is started by itself is a job of one rank.
//
// Functions take slices of Go's numbers (and bool, and Pair): their length is the
// count, their element type the datatype. Methods take Buffers, which can have any
// datatype. Inside one site, and between sites of one byte order, memory travels as
// it is; to others as external32.
//
// Errors are values. They wrap what went wrong, for errors.Is, and ErrorClass
// gives the MPI error class. A communicator's error handler is told of them, too.
//
// All functions may be called from several goroutines at once
// (MPI_THREAD_MULTIPLE). Communication makes progress in whichever goroutine
// waits in this package, and only there: a program that computes for long while
// a large message is under way should call Test now and then.
package mpi
