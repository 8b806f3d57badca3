package site

import (
	"fmt"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/plugins/host"
)

// Verify checks the files of the site's plugins: whether they may be run, are those that the job
// file trusts, and are still those that run.
func (s *Site) Verify() (files []links.File) {
	for _, t := range s.Routes.Site.Transports {
		if t.Builtin {
			continue
		}
		f := verify(t)
		if p := s.Routes.Transport(t.Name); p != nil && p.Plugin != nil {
			f.Running = p.Plugin.Status().Digest
		}
		if f.Error == "" && f.Running != "" && f.Running != f.SHA256 {
			f.Error = fmt.Sprintf("the file has sha256 %s, the running process is of a file with %s: impi-node plugins reload %s", f.SHA256, f.Running, t.Name)
		}
		files = append(files, f)
	}
	return files
}

func verify(t config.Transport) links.File {
	f := links.File{Transport: t.Name, Path: t.Path, Trusted: t.SHA256}
	var err error
	if f.Path, f.SHA256, err = host.Examine(t.Path, t.SHA256); err != nil {
		f.Error = err.Error()
	}
	return f
}
