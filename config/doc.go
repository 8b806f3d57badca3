// Package config turns a job file (HCL, docs/config.md) into the plain values that the rest
// of the product uses.
//
// There are two kinds of values. File values are what the file says, each optional and with
// its position. Runtime values (Job, Site, ...) result from merging and checking the
// job-wide blocks, the site's own blocks and the defaults; they are complete and contain no
// HCL types.
//
// Every fault is one Diagnostic: the position, the source line with the error underlined,
// and what to write instead. All faults of a file are reported at once, in the order of the
// file. Schema and printing are our own: of the 150 faults that testdata had on 25 November
// 2026 hcldec found 32, and 3 with the text that is wanted
// (docs/decisions/0042-which-framings-are-grpc.md).
//
// The package knows no transport. Its caller gives it the names of the built-in ones, and
// each transport's own schema checks its config block; Job.TransportFault makes a
// Diagnostic of a fault that the schema finds.
package config
