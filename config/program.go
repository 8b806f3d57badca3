package config

import (
	"maps"
	"os"
)

// program merges s's own program block over the one at the top of the file,
// attribute by attribute; the environments are united.
func (b *builder) program(s *siteDraft) {
	own, shared := b.layers(s, "program")
	if own == nil && shared == nil {
		b.fault(s.Pos, "site "+quote(s.Name)+" has no program", `add program { command = ["./prog"] }`)
		return
	}
	at := own
	if at == nil {
		at = shared
	}
	s.Program = Program{
		Command:      pick([]string(nil), "command", own, shared),
		Dir:          absolute(b.dir, pick(".", "dir", own, shared)),
		Env:          map[string]string{},
		PrefixOutput: pick(true, "prefix_output", own, shared),
		Stdin:        int(pick(int64(0), "stdin", own, shared)),
		Pos:          at.pos,
	}
	for _, layer := range []*block{shared, own} {
		maps.Copy(s.Program.Env, pick(map[string]string(nil), "env", layer))
	}
	if !own.has("command") && !shared.has("command") {
		b.fault(at.pos, "program has no command", `add command = ["./prog"]`)
	}
	b.checkStdin(s, own, shared)
	if b.here(s) {
		b.findProgram(s, own, shared)
	}
}

// findProgram looks for the command and the working folder on this machine.
func (b *builder) findProgram(s *siteDraft, own, shared *block) {
	if command := s.Program.Command; len(command) > 0 {
		path, problem, remedy := findCommand(b.dir, command[0], b.shown(command[0]))
		s.Program.Path = path
		if problem != "" {
			b.fault(placeOf("command", own, shared), problem, remedy)
		}
	}
	info, err := os.Stat(s.Program.Dir)
	dir := quote(b.shown(pick(".", "dir", own, shared)))
	switch {
	case err != nil:
		b.fault(placeOf("dir", own, shared), "there is no folder "+dir, "make it, or correct dir, which starts from the folder of the job file")
	case !info.IsDir():
		b.fault(placeOf("dir", own, shared), dir+" is not a folder", "name the folder that the program should run in")
	}
}

// placeOf is the place of an attribute in the first block that has it. For a
// list it is its first element, where the culprit usually is.
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

func (b *builder) checkStdin(s *siteDraft, own, shared *block) {
	if !b.result.Complete || len(b.ours()) != len(b.sites) {
		return
	}
	total := 0
	for _, other := range b.ours() {
		for _, h := range b.hostBlocks(other) {
			total += int(pick(int64(1), "procs", h))
		}
	}
	if s.Program.Stdin >= total && total > 0 {
		b.fault(placeOf("stdin", own, shared), "the job has no rank "+itoa(s.Program.Stdin),
			"write a rank from 0 to "+itoa(total-1)+", or -1 for none")
	}
}
