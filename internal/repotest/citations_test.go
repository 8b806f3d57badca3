package repotest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// LinesPerCitation is how many lines a package of the protocol may have for each place where a
// comment names a section of IMPI or MPI.
const LinesPerCitation = 100

// protocol are the packages that do what a standard prescribes.
var protocol = []string{
	"core/agent", "core/coll", "core/comm", "core/datatype", "core/dynamic", "core/flow", "core/match",
	"core/message", "core/rma", "core/spawn", "core/startup", "core/wire",
	"internal/engine/collective", "internal/engine/construct", "internal/engine/file", "internal/engine/life", "internal/engine/meet",
	"internal/engine/object", "internal/engine/p2p", "internal/engine/tool", "internal/engine/window",
}

// impiSections are what comments call the sections of IMPI 0.0, by chapter: the published text
// could not be had, and section numbers of the draft of March 1999 are others.
var impiSections = map[string][]string{
	"1": {"Data Format"},
	"2": {
		"Authentication", "Client labels", "Client-Server Protocol", "COLL command", "Collection of startup information",
		"C_COLL_XSIZE and C_COLL_MAXLINEAR", "C_DATALEN", "C_NPROCS", "C_TAGUB", "C_VERSION", "DONE command", "FINI command",
		"H_IPV6 and H_PORT", "H_NPROCS", "Host labels", "Host-to-host connections", "IMPI command", "Proc labels", "Startup", "User Attributes",
	},
	"3": {
		"Cancel", "Finalization", "Long Messages", "Mandated Properties", "Message Matching", "Message Passing Protocols",
		"Packet Format", "Packet Protocol", "Probe",
	},
	"4": {
		"Allgather", "Allreduce", "Alltoall", "Alltoallv", "Barrier", "Bcast", "Collective crossovers", "Collective tags", "Comm_create", "Comm_dup",
		"Comm_free", "Comm_split", "Context IDs", "Gather", "Gatherv", "Intercomm_create", "Intercomm_merge", "Reduce", "Scan", "Scatter", "Scatterv",
		"Utility functions",
	},
}

// mpiSections are how many sections each chapter of MPI-4.1 has.
var mpiSections = map[int]int{
	2: 11, 3: 11, 4: 3, 5: 3, 6: 14, 7: 9, 8: 9, 9: 6, 11: 10, 12: 8, 13: 3, 14: 8, 15: 3, 19: 3,
}

var (
	impiCitation = regexp.MustCompile(`\bIMPI ch\. ?(\d), ([A-Za-z0-9_ -]+)`)
	mpiCitation  = regexp.MustCompile(`\bMPI-4\.1, (\d+)\.(\d+)`)
)

// Citations wants the packages of the protocol to say where the standard has what they do, and no
// comment to name a section that there is not.
func Citations(r *Repo) []Problem {
	var problems []Problem
	cited, lines := map[string]int{}, map[string]int{}
	for _, f := range r.Go {
		for _, g := range f.AST.Comments {
			n, unknown := citations(strings.Join(strings.Fields(g.Text()), " "))
			for _, u := range unknown {
				problems = append(problems, Problem{f.Path, r.line(g.Pos()), u + ": the standard has no such section"})
			}
			if !f.Test {
				cited[f.Dir] += n
			}
		}
		if !f.Test && !f.Generated && slices.Contains(protocol, f.Dir) {
			lines[f.Dir] += f.Lines
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		if least := (lines[dir] + LinesPerCitation - 1) / LinesPerCitation; cited[dir] < least {
			text := fmt.Sprintf("%d lines cite the standard %d times, at least %d are wanted: \"IMPI ch.3, Packet Protocol\" or \"MPI-4.1, 3.5\"",
				lines[dir], cited[dir], least)
			problems = append(problems, Problem{Path: dir, Text: text})
		}
	}
	return problems
}

// citations counts the sections that a comment names, and gives those that there are not.
func citations(comment string) (n int, unknown []string) {
	for _, m := range impiCitation.FindAllStringSubmatch(comment, -1) {
		known := slices.ContainsFunc(impiSections[m[1]], func(s string) bool {
			rest, ok := strings.CutPrefix(m[2], s)
			return ok && (rest == "" || rest[0] == ' ')
		})
		if n++; !known {
			unknown = append(unknown, strings.TrimSpace(m[0]))
		}
	}
	for _, m := range mpiCitation.FindAllStringSubmatch(comment, -1) {
		chapter, _ := strconv.Atoi(m[1])
		section, _ := strconv.Atoi(m[2])
		if n++; section < 1 || section > mpiSections[chapter] {
			unknown = append(unknown, m[0])
		}
	}
	return n, unknown
}
