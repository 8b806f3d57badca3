// Package unproved decides about connections that have not shown yet that they
// belong to the job: how many there may be, from one source and in all, which
// one goes when there is no room, and how long a source of wrong secrets waits
// for its answer. It keeps no connections and knows no clock: connections are
// the owner's IDs, and time is an argument.
package unproved
