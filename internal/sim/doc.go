// Package sim decides by one number what a whole job is, what it does and what
// goes wrong, lets it happen, and judges it.
//
// A Case is all that a seed decides about one job or several that meet: the sites, hosts and procs,
// how links behave, the program and the faults. Generate makes one of a seed, Run runs it on
// internal/sim/kernel, and Verdict says whether everything was as it must be:
//
//   - the bytes on all links (internal/sim/check),
//   - what each rank received and computed (internal/sim/script),
//   - that the job ends: in order if nothing deadly happened; otherwise every
//     survivor learns of it, soon,
//   - where jobs meet, that nothing is left of others when they have parted,
//   - that a run can be repeated to the last byte.
//
// Cases are drawn from rapid (pgregory.net/rapid), which Shrink uses to make a failing one small.
// Cases have a text form, which String writes and Parse reads; those that failed once are kept in
// testdata, one file each.
package sim
