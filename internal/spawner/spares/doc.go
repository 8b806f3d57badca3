// Package spares connects spare sites with the hosts of a job. The node of a spare site dials each
// host and leaves the link idle (SpareNode); the nodes of the job keep such links until a spawn
// takes one (SpareSites). What is decided is in core/spawn and core/ending.
//
// On a link, by dial.Messages:
//
//	the spare site          a node of the job
//	  offer            -->
//	                   <--  taken, or why not
//	                   <--  order: procs are asked for, or the job is over
//
// After an order with a part the link goes on as a request between two sites does.
package spares
