// Package matrix runs real jobs over every transport, by every data plane, with
// every fault that can be brought about, and makes a table of what came of it. A
// cell that did not run is never green: it says why it did not.
package matrix
