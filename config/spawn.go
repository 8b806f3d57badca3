package config

import (
	"path/filepath"
	"slices"
)

// DefaultSlots is how many spawned procs a site may have at a time without a
// spawn block.
const DefaultSlots = 256

// Spawn configures which programs may be started at a site while the job runs (MPI_Comm_spawn), and
// how many procs of these programs there may be.
type Spawn struct {
	Slots int `hcl:"slots"` // maximum number of living spawned procs, of all parents

	// Allow contains absolute file name patterns of programs. Procs of other sites may spawn here
	// only if Allow is set. nil means no list, which differs from an empty list.
	Allow []string `hcl:"allow"`
}

// Allows reports whether a program, given by its clean absolute path, may be spawned by a proc of
// the site itself or, with elsewhere, of another site. Without a list the site's own procs may
// start any program, since they could anyway: they run as the same user.
func (s *Spawn) Allows(path string, elsewhere bool) bool {
	if s.Allow == nil {
		return !elsewhere
	}
	return slices.ContainsFunc(s.Allow, func(pattern string) bool {
		ok, err := filepath.Match(pattern, path)
		return err == nil && ok
	})
}

// spawn merges s's spawn blocks. One without a list lets only the site itself spawn.
func (s *siteDraft) spawn() {
	own, shared := s.layers("spawn")
	s.Spawn = Spawn{Slots: DefaultSlots}
	fill(&s.Spawn, own, shared)
	s.Spawn.Allow = slices.Clone(s.Spawn.Allow) // other sites use the same list
	for i, pattern := range s.Spawn.Allow {
		if _, err := filepath.Match(pattern, ""); err != nil {
			s.fault(elementOf("allow", i, own, shared), quote(pattern)+" is no pattern of file names",
				`write a path; * stands for any characters but /, ? for one, [a-c] for one of these`)
		}
		s.Spawn.Allow[i] = absolute(s.dir, pattern)
	}
	if s.Spare && s.Spawn.Allow == nil {
		s.fault(s.block.at("spare"), "site "+quote(s.Name)+" is spare and lets no other site spawn procs, which is all that it is for",
			`add spawn { allow = ["./bin/*"] } with the programs that may be started there`)
	}
}

// elementOf returns the position of an element of a list in the first block that has the list.
func elementOf(name string, i int, blocks ...*block) Pos {
	for _, in := range blocks {
		if elements := in.list(name); i < len(elements) {
			return elements[i]
		}
	}
	return placeOf(name, blocks...)
}

// list returns the positions of a list's elements, if b has the list as an expression in brackets.
func (b *block) list(name string) []Pos {
	if !b.has(name) {
		return nil
	}
	return b.values[name].elements
}

var blockSpawn = &blockSpec{name: "spawn", attrs: []attrSpec{
	{name: "slots", kind: integer(0, 1<<20)},
	{name: "allow", kind: words(`["./bin/*"]`)},
}}

// FindProgram returns the clean absolute path of a program that can be run. A command without a
// slash is looked for in PATH, another relative one starts from dir. problem is the reason if there
// is no such program, and otherwise empty.
func FindProgram(dir, command string) (path, problem string) {
	path, problem, remedy := findCommand(dir, command, command)
	if problem != "" {
		return "", problem + ": " + remedy
	}
	return path, ""
}
