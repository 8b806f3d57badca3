// Package collective has the collective operations, neighbourhood ones included: it takes the
// schedules of core/coll and executes them over a communicator of package proc, or uses the memory
// that the procs of a host share.
package collective
