// Package interpreter is the program on the side of an implementation under test:
// what "impi-conform protocol" plays its cases against. It does what it is told in
// messages with tag 32001 and answers with tag 32002 to whoever told it. c/interpreter.c
// is the same for C, and compiles with any MPI of 1994 or later.
//
// A command is a line of text: a word, and arguments as name=value. Numbers are decimal;
// src and tag may be "any". The answer is "ok" and results, or "error class=N" and
// what the MPI said; N is a class of its own numbering.
//
//	ping | finalize | exit code | abort code | info comm
//	send, ssend, bsend, rsend             dst tag comm type n seed
//	isend, issend, ibsend, irsend         the same, and req
//	recv                                  src tag comm type n
//	irecv                                 the same, and req
//	wait, test, cancel                    req
//	probe, iprobe                         src tag comm type
//	sendrecv                              dst stag src rtag comm type n seed rn
//	barrier                               comm
//	bcast                                 comm root type n seed
//	reduce, allreduce, scan               comm root op type n seed
//	reduce_scatter                        comm op type counts seed
//	gather, scatter, allgather, alltoall  comm root type n seed
//	gatherv, scatterv, allgatherv         comm root type counts seed
//	alltoallv                             comm type counts rcounts seed
//	dup, free, split, create, intercomm, merge
//	                                      comm new color key ranks leader peer remote tag high
//
// Communicators and requests have numbers that the tester chooses; communicator 0 is
// MPI_COMM_WORLD. counts are separated by commas. Element i of a buffer that is sent is
// seed + 7i + i/251, cut to what its type holds (see value); an element that is received is told by
// "hash", the FNV-1a hash of all elements as 8 bytes big-endian, and "first", the first four.
//
// The operations are sum, prod, max, min, band, bor, bxor, land, lor, lxor, and concat:
// associative, not commutative, on pairs of elements, (a,b) concat (c,d) = (ac, bc+d).
// The elements of its operands are 10, seed, 10, seed, ...
package interpreter
