// Package matrix runs real jobs over every transport, by every data plane, with every fault
// that can be caused, and makes a table of the results. A cell that was not run is never
// shown as passed: the table says why it was not.
package matrix
