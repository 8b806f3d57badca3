package config

import (
	"cmp"
	"maps"
	"os"
)

// program merges s's own program block over the one at the top of the file,
// attribute by attribute; the environments are united.
func (s *siteDraft) program() {
	own, shared := s.layers("program")
	if own == nil && shared == nil && s.Spare {
		s.Program = Program{Dir: absolute(s.dir, "."), Env: map[string]string{}, PrefixOutput: true, Stdin: -1, Pos: s.Pos}
		return
	}
	if own == nil && shared == nil {
		s.fault(s.Pos, "site "+quote(s.Name)+" has no program", `add program { command = ["./prog"] }`)
		return
	}
	at := cmp.Or(own, shared)
	s.Program = Program{Dir: ".", Env: map[string]string{}, PrefixOutput: true, Pos: at.pos}
	fill(&s.Program, own, shared)
	s.Program.Dir = absolute(s.dir, s.Program.Dir)
	for _, layer := range []*block{shared, own} {
		maps.Copy(s.Program.Env, pick(map[string]string(nil), "env", layer))
	}
	if !own.has("command") && !shared.has("command") && !s.Spare {
		s.fault(at.pos, "program has no command", `add command = ["./prog"]`)
	}
	s.checkStdin(own, shared)
	if s.here() {
		s.findProgram(own, shared)
	}
}

func (s *siteDraft) findProgram(own, shared *block) {
	if command := s.Program.Command; len(command) > 0 && !s.Spare {
		path, problem, remedy := findCommand(s.dir, command[0], s.shown(command[0]))
		s.Program.Path = path
		if problem != "" {
			s.fault(placeOf("command", own, shared), problem, remedy)
		}
	}
	info, err := os.Stat(s.Program.Dir)
	dir := quote(s.shown(pick(".", "dir", own, shared)))
	switch {
	case err != nil:
		s.fault(placeOf("dir", own, shared), "there is no folder "+dir, "make it, or correct dir, which starts from the folder of the job file")
	case !info.IsDir():
		s.fault(placeOf("dir", own, shared), dir+" is not a folder", "name the folder that the program should run in")
	}
}

// placeOf returns the position of an attribute in the first block that has it. For a list it is
// that of the first element, which has the fault most often.
func placeOf(name string, blocks ...*block) Pos {
	for _, in := range blocks {
		if !in.has(name) {
			continue
		}
		if elements := in.values[name].elements; len(elements) > 0 {
			return elements[0]
		}
		return in.at(name)
	}
	return Pos{}
}

func (s *siteDraft) checkStdin(own, shared *block) {
	if !s.result.Complete || len(s.ours()) != len(s.sites) {
		return
	}
	total := 0
	for _, other := range ourMembers(s.builder) {
		if !other.CountsKnown() {
			return
		}
		total += other.Procs()
	}
	if s.Program.Stdin >= total && total > 0 {
		s.fault(placeOf("stdin", own, shared), "the job has no rank "+itoa(s.Program.Stdin),
			"write a rank from 0 to "+itoa(total-1)+", or -1 for none")
	}
}
