package matrix

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/openimpi/impi/internal/vendors"
)

const certificates = `cert = "DIR/certs/SITE.pem"  key = "DIR/certs/SITE.key"  ca = "DIR/certs/ca.pem"`

// pumped are the data planes by which bytes pass through a plugin.
var pumped = []string{"ring", "stream", "grpc"}

// onMachine are the plugins of examples/plugins whose links stay on the machine.
var onMachine = []string{"pretend", "pretend-c"}

// uncut says of plugins of examples/plugins why their links cannot be cut.
var uncut = map[string]string{
	"ofi": "libfabric has the connections: one that is shut down it makes anew by itself, so that no link breaks, and one that is reset beneath it is not used again within the time of resume",
}

// Known lists the transports. The plugins of examples/plugins are built from the checkout
// in root; if that is impossible, their rows say why.
func Known(root string) []Transport {
	all := []Transport{
		{Name: "tcp", ConfigName: "tcp", Planes: append([]string{"fd"}, pumped...)},
		{Name: "tcp+tls", ConfigName: "tcp", Planes: pumped, Block: "config { tls = true  " + certificates + " }"},
		{Name: "unix", ConfigName: "unix", Planes: append([]string{"fd"}, pumped...), Machine: true},
		{Name: "shm", ConfigName: "shm", Planes: []string{"peer-shm"}, Machine: true},
		{Name: "quic", ConfigName: "quic", Planes: pumped, Datagrams: true, Block: "config { keepalive = 1  idle_timeout = 4  " + certificates + " }"},
	}
	all = append(all, natives())
	for _, g := range vendors.All {
		t := Transport{Name: g.Name, ConfigName: g.Name, Few: g.Few, Machine: slices.Contains(onMachine, g.Name), NoCut: uncut[g.Name]}
		for _, p := range g.Planes {
			t.Planes = append(t.Planes, string(p))
		}
		file, err := g.Build(root)
		if err != nil {
			t.Missing = err.Error()
		}
		t.Block = fmt.Sprintf("plugin = %q", file)
		if g.NoMTLS {
			t.Block += "  auto_mtls = false"
		}
		all = append(all, t)
	}
	return all
}

// natives is a row of jobs with a site of Open MPI and one of MPICH, whose procs use these MPIs
// within the machine too, and tcp between the sites.
func natives() Transport {
	t := Transport{Name: "Open MPI, MPICH + tcp", ConfigName: "tcp", Planes: []string{"fd"}}
	const inside = `native {
    mpicc  = "mpicc.%[1]s"
    launch = ["/usr/bin/env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun.%[1]s", %[2]s"-n", "{procs}"]
  }
  route "SITE" { prefer = ["native"] }`
	for name, option := range map[string]string{"openmpi": `"--oversubscribe", `, "mpich": ""} {
		if _, err := exec.LookPath("mpicc." + name); err != nil {
			t.Missing = "there is no mpicc." + name
		}
		t.Natives = append(t.Natives, fmt.Sprintf(inside, name, option))
	}
	slices.Sort(t.Natives) // MPICH is at site alpha
	return t
}

// Prepare makes the certificates that the transports need.
func (r *Runner) Prepare() error {
	cmd := exec.Command(filepath.Join(r.Bin, "impi-node"), "cert", "init", "-dir", filepath.Join(r.Temp, "certs"), "-sites", "alpha,beta")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("certificates: %w: %s", err, out)
	}
	return nil
}
