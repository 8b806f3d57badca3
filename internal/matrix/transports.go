package matrix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// certificates is what the transports that want some are configured with.
const certificates = `cert = "DIR/certs/SITE.pem"  key = "DIR/certs/SITE.key"  ca = "DIR/certs/ca.pem"`

// pumped are the data planes of links that live in a plugin.
var pumped = []string{"ring", "stream", "grpc"}

// Known lists the transports. Plugins that are not in dir are rows that say so.
func Known(dir string) []Transport {
	all := []Transport{
		{Name: "tcp", As: "tcp", Planes: append([]string{"fd"}, pumped...), Builtin: true, Channels: true},
		{Name: "tcp+tls", As: "tcp", Planes: pumped, Builtin: true, Block: "config { tls = true  " + certificates + " }"},
		{Name: "unix", As: "unix", Planes: append([]string{"fd"}, pumped...), Builtin: true, Machine: true},
		{Name: "shm", As: "shm", Planes: []string{"peer-shm"}, Builtin: true, Machine: true},
		{Name: "quic", As: "quic", Planes: pumped, Builtin: true, Datagrams: true, Block: "config { " + certificates + " }"},
		{Name: "websocket", As: "websocket", Planes: pumped, Block: `plugin = "impi-transport-websocket"`},
		{Name: "python", As: "python", Planes: []string{"stream"}, Block: `plugin = "impi-transport-python"`},
	}
	for i := range all {
		if t := &all[i]; !t.Builtin {
			file := filepath.Join(dir, "impi-transport-"+t.Name)
			if _, err := os.Stat(file); err != nil {
				t.Missing = "its plugin impi-transport-" + t.Name + " is not built"
			}
		}
	}
	return all
}

// Prepare makes what the transports need: certificates.
func (r *Runner) Prepare() error {
	cmd := exec.Command(filepath.Join(r.Bin, "impi-node"), "cert", "init", "-dir", filepath.Join(r.Temp, "certs"), "-sites", "alpha,beta")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("certificates: %w: %s", err, out)
	}
	return nil
}
