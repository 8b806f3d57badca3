package host

import (
	"os"
	"strings"

	"github.com/openimpi/impi/plugins/host/rights"
)

// writable returns the folders below which a plugin may change files: that of its sockets, those
// for temporary files and coverage by this process's environment and by its own, devices, and
// /proc.
func writable(cfg *Config, runDir string) []string {
	dirs := []string{runDir, os.TempDir(), "/tmp", "/var/tmp", "/dev", "/proc", os.Getenv("XDG_RUNTIME_DIR"), os.Getenv("GOCOVERDIR")}
	for _, variable := range cfg.Env {
		for _, name := range []string{"TMPDIR=", "XDG_RUNTIME_DIR="} {
			if dir, ok := strings.CutPrefix(variable, name); ok {
				dirs = append(dirs, dir)
			}
		}
	}
	list := dirs[:0]
	for _, dir := range dirs {
		if dir != "" {
			list = append(list, dir)
		}
	}
	return list
}

func wish(cfg *Config, runDir string) rights.Restrictions {
	return rights.Restrictions{Writable: writable(cfg, runDir), Namespace: cfg.UserNamespace}
}

// confine has the process be started with fewer rights than this one has, unless its Config says
// otherwise.
func (p *process) confine(cfg *Config, runDir string) {
	if cfg.Unconfined {
		return
	}
	w := wish(cfg, runDir)
	w.Prepare(p.cmd.SysProcAttr)
	p.restrict = func() error {
		held, err := rights.Restrict(w)
		if err == nil {
			p.log.Debug("rights are taken from the plugin", "landlock", held.Landlock, "filter", held.Filter, "user_namespace", w.Namespace)
		}
		return err
	}
	p.blame = w.Explain
}
