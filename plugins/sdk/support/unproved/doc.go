// Package unproved decides about connections that have not yet proved that they belong to
// the job: how many there may be, from one source and in all, which one is closed when
// there are too many, and how long the answer to a wrong secret is delayed. It keeps no
// connections and has no clock: connections are the caller's IDs, and time is an argument.
package unproved
