package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/plugins/sdk/support/pki"
	"github.com/openimpi/impi/plugins/sdk/support/pki/pkitest"
)

// TestMachinesWithAnInterfaceThatLeadsNowhere: machines with a second interface whose network does
// not route use the addresses of the file, and say which addresses do not reach each other if the
// file chooses that network, long before the limit of the start.
func TestMachinesWithAnInterfaceThatLeadsNowhere(t *testing.T) {
	file, machines := machineJob(t, "limits { start = \"5m\" }\n")
	for i, m := range machines {
		add := fmt.Sprintf("ip link add spare type veth peer name nowhere && ip link set nowhere up && ip address add 192.168.5.%d/24 dev spare && ip link set spare up", i+1)
		if out, err := m.Command(t.Context(), "sh", "-c", add).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	nodes := startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s != 0 {
			t.Errorf("machine %d: status %d", i, s)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("  procs  = 2\n"), []byte("  procs  = 2\n  network = \"spare\"\n"))
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	nodes = startOn(t, file, "meet", machines)
	for i, s := range ends(nodes) {
		if s == 0 {
			t.Errorf("machine %d: status 0", i)
		}
	}
	for _, head := range []int{0, 3} {
		log := nodes[head].err.String()
		for _, want := range []string{" at 192.168.5.", " was not reached: from 192.168.5.", "remove firewalls between them"} {
			if !strings.Contains(log, want) || strings.Contains(log, "5m0s") {
				t.Errorf("the head on machine %d does not say %q before the start is over:\n%s", head, want, log)
			}
		}
	}
}

// otherRelease builds an impi-node of another release.
func otherRelease(t *testing.T) (path string) {
	t.Helper()
	return builtWith(t, "../../internal/version/version.go", `const Release = "`, `const Release = "0.0.`)
}

// builtWith builds an impi-node in one of whose files a text is another.
func builtWith(t *testing.T, file, was, is string) (path string) {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(text, []byte(was)) != 1 {
		t.Fatalf("%s does not have %q once", file, was)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: filepath.Join(dir, "other.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"other.go": bytes.Replace(text, []byte(was), []byte(is), 1), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(dir, "impi-node")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestMachineThatDoesNotFit: a machine whose network, file, key or release does not fit ends the
// start of its site at once, on all machines of it, with its name and its own reason.
func TestMachineThatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		change, by   string // in the file of the one machine
		says, remedy string
	}{
		"network": {"procs  = 2\n", "procs  = 2\n  network = env.NETWORK\n", "host 10.77.0.2: this machine has no address in the site's network nowhere", "correct network, or take it out"},
		"file":    {"procs  = 2\n", "procs  = 1\n", "host 10.77.0.2: the hosts have different job files: the files of 10.77.0.2 and 10.77.0.1 describe the site differently", "; copy one of them to both"},
		"key":     {"job.key", "other.key", "host 10.77.0.2: the hosts do not have the same secret of the job: 10.77.0.2 has another key", "; copy the key's file to both"},
		"routes":  {"site \"alpha\" {", "route \"*\" { direct = false }\nsite \"alpha\" {", "host 10.77.0.2: the hosts have different job files: ", "; copy one of them to both"},
		"release": {"", "", `host 10.77.0.2: the hosts run different versions of impi-node: 10.77.0.2 has "0.0.0.`, "; install the same on both"},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, "limits { start = \"10h\" }\nlog { level = \"debug\" }\n")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			odd := filepath.Join(filepath.Dir(file), "odd.hcl")
			text := strings.Replace(string(b), c.change, c.by, 1)
			if name == "network" { // the same file on all machines
				file = odd
			}
			err = errors.Join(os.WriteFile(odd, []byte(text), 0o644), os.WriteFile(filepath.Join(filepath.Dir(file), "other.key"), []byte("4243\n"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			network := "NETWORK=10.77.0.0/16"
			nodes := make([]*machineNode, 3)
			for _, i := range []int{0, 2} {
				nodes[i] = startNode(t, machines[i], "meet", network, "-config", file)
			}
			nodes[0].awaits(t, nodes[0].err, "a host has joined")
			switch name {
			case "network":
				nodes[1] = startNode(t, machines[1], "meet", "NETWORK=nowhere", "-config", odd)
			case "release":
				nodes[1] = startNodeOf(t, otherRelease(t), machines[1], "meet", network, "-config", odd)
			default:
				nodes[1] = startNode(t, machines[1], "meet", network, "-config", odd)
			}
			for i, s := range ends(nodes) {
				log, says := nodes[i].err.String(), "site alpha: "+c.says
				if i == 1 { // it knows by itself
					_, says, _ = strings.Cut(c.says, ": ")
					says, _, _ = strings.Cut(says, ": 10.77.0.2 has another key")
				}
				if s != statusUsage || !strings.Contains(log, says) || !strings.Contains(log, c.remedy) || strings.Contains(log, "10h0m0s") {
					t.Errorf("machine %d: status %d, or it does not say %q and %q", i, s, says, c.remedy)
				}
			}
		})
	}
}

// certificatesOn makes the files of a site's certificate, for one machine. alive is from when on
// its hour counts.
func certificatesOn(t *testing.T, ca *pki.Authority, alive time.Time) (dir string) {
	t.Helper()
	pair, err := ca.Issue("alpha", alive, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, b := range map[string][]byte{"site.pem": pair.Cert, "site.key": pair.Key, "ca.pem": ca.Pair().Cert} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const withCertificates = `transport "tcp" {
  config {
    tls  = true
    cert = "${env.CERTS}/site.pem"
    key  = "${env.CERTS}/site.key"
    ca   = "${env.CERTS}/ca.pem"
  }
}
`

// overQUIC has the hosts of machineJob meet by QUIC alone.
const overQUIC = `transport "quic" {
  config {
    cert = "${env.CERTS}/site.pem"
    key  = "${env.CERTS}/site.key"
    ca   = "${env.CERTS}/ca.pem"
  }
}
route "*" { prefer = ["quic"] }
`

// TestMachinesWithCertificates: hosts whose site has certificates meet by them. One without, with
// one that has expired or with one of another CA ends the start at once, by its name, on all
// machines of the site.
func TestMachinesWithCertificates(t *testing.T) {
	ours, theirs := pkitest.Authority(t), pkitest.Authority(t)
	good := func(t *testing.T) string { return certificatesOn(t, ours, time.Now()) }
	t.Run("all good", func(t *testing.T) {
		file, machines := machineJob(t, withCertificates)
		var nodes []*machineNode
		for _, m := range machines {
			nodes = append(nodes, startNode(t, m, "meet", "CERTS="+good(t), "-config", file))
		}
		for i, s := range ends(nodes) {
			if s != 0 {
				t.Errorf("machine %d: status %d", i, s)
			}
		}
		for _, head := range []int{0, 3} {
			if out := nodes[head].out.String(); strings.Count(out, "met\n") != 6 {
				t.Errorf("the head on machine %d has %s", head, out)
			}
		}
	})
	for name, c := range map[string]struct {
		odd   int // the machine
		certs func(t *testing.T) string
		says  string
	}{
		"none":            {1, func(t *testing.T) string { return t.TempDir() }, "host 10.77.0.2: "},
		"expired":         {1, func(t *testing.T) string { return certificatesOn(t, ours, time.Now().Add(-2*time.Hour)) }, "host 10.77.0.2: "},
		"foreign":         {1, func(t *testing.T) string { return certificatesOn(t, theirs, time.Now()) }, "host 10.77.0.2: the hosts do not accept each other's certificates: 10.77.0.2 does not accept that of 10.77.0.1: the certificate of \"alpha\" was not signed by the CA"},
		"expired at head": {0, func(t *testing.T) string { return certificatesOn(t, ours, time.Now().Add(-2*time.Hour)) }, "host 10.77.0.1: "},
	} {
		t.Run(name, func(t *testing.T) {
			file, machines := machineJob(t, withCertificates+"limits { start = \"10h\" }\nlog { level = \"debug\" }\n")
			nodes := make([]*machineNode, 3)
			for i := range nodes {
				if i != c.odd {
					nodes[i] = startNode(t, machines[i], "meet", "CERTS="+good(t), "-config", file)
				}
			}
			if c.odd != 0 {
				nodes[0].awaits(t, nodes[0].err, "a host has joined")
			}
			nodes[c.odd] = startNode(t, machines[c.odd], "meet", "CERTS="+c.certs(t), "-config", file)
			remedy := map[string]string{"none": "there is no file ", "expired": "expired on ", "expired at head": "make a new one with: impi-node cert issue", "foreign": "impi-node cert issue makes a new one"}[name]
			for i, s := range ends(nodes) {
				log := nodes[i].err.String()
				if s != statusUsage || !strings.Contains(log, "impi-node: site alpha: "+c.says) || !strings.Contains(log, remedy) || strings.Contains(log, "10h0m0s") {
					t.Errorf("machine %d: status %d, or it does not say %q and %q", i, s, c.says, remedy)
				}
			}
		})
	}
}
