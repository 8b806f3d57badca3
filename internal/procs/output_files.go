package procs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/launch"
)

// intoFiles opens the files that the program names for the output of a proc, if it names any. The
// proc inherits them; close closes the node's descriptors.
func (s *Set) intoFiles(spec *launch.Spec, local int) (close func(), err error) {
	var files []*os.File
	close = func() {
		for _, f := range files {
			_ = f.Close() // nothing was written by this process
		}
	}
	program := s.Program(local)
	if program.ErrFile == program.OutFile {
		program.ErrFile = ""
	}
	for _, out := range []struct {
		pattern string
		to      *io.Writer
	}{{program.OutFile, &spec.Stdout}, {program.ErrFile, &spec.Stderr}} {
		if out.pattern == "" {
			continue
		}
		f, err := s.openOutput(out.pattern, local)
		if err != nil {
			close()
			return nil, fmt.Errorf("file for output: %w", err)
		}
		files = append(files, f)
		*out.to = f
	}
	if p := s.Program(local); p.ErrFile != "" && p.ErrFile == p.OutFile {
		spec.Stderr = spec.Stdout
	}
	return close, nil
}

// openOutput opens a file for output. Procs may share one: it is opened for appending, so that the
// bytes of one write stay together, and only the first proc truncates it.
func (s *Set) openOutput(pattern string, local int) (*os.File, error) {
	name, flags := s.outputName(pattern, local), os.O_WRONLY|os.O_CREATE|os.O_APPEND|os.O_TRUNC
	for before := range local {
		if p := s.Program(before); s.outputName(p.OutFile, before) == name || s.outputName(p.ErrFile, before) == name {
			flags &^= os.O_TRUNC
			break
		}
	}
	return os.OpenFile(name, flags, 0o666)
}

// outputName is the path that a pattern stands for: %r is the proc's rank, or its
// number at the site as long as ranks are not known.
func (s *Set) outputName(pattern string, local int) string {
	first, _ := s.firstRank()
	name := strings.ReplaceAll(pattern, "%r", strconv.Itoa(first+local))
	if name != "" && !filepath.IsAbs(name) {
		name = filepath.Join(s.Routes.Job.Dir, name)
	}
	return name
}
