// Package config turns a job file (HCL) into the plain values that the rest of
// the product runs on.
//
// There are two shapes. File values are what the file says, each one optional
// and each with its place in the source. Runtime values (Job, Site, ...) are
// what results after the job-wide blocks, the site's own blocks and the
// defaults were merged and checked; they are complete and hold no HCL type.
//
// Every fault is one Diagnostic: the place, the source line with the culprit
// underlined, and what to write instead. All faults of a file are reported at
// once, in the order of the file. Schema and printing are our own: of the 150 faults of
// testdata hcldec finds 32, and 3 with the text that is wanted (docs/decisions/0042).
//
// The package knows no transport. It takes the names of the built-in ones from
// its caller and leaves the inside of a transport's config block to that
// transport's own schema; Job.TransportFault turns the schema's verdict into a
// Diagnostic like the others.
package config
