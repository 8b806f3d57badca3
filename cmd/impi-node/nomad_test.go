package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/peers"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/transcript"
)

// nomadCluster is Nomad on machines: the first has the server, each is a client.
type nomadCluster struct {
	t        *testing.T
	path     string // of nomad
	dir      string // of the clients' data, a folder for each
	machines []*netns.Machine
}

const nomadAPI = "http://10.77.0.1:4646"

// startNomad starts real agents, with the driver raw_exec and without Consul. In their PATH is
// folder.
func startNomad(t *testing.T, machines []*netns.Machine, folder string) *nomadCluster {
	t.Helper()
	path, err := peers.FindNomad()
	if err != nil {
		skips.NotRun(t, "there is no Nomad: "+err.Error(), "go run ./internal/peers/make")
	}
	c := &nomadCluster{t: t, path: path, dir: t.TempDir(), machines: machines}
	for i, m := range machines {
		data := filepath.Join(c.dir, fmt.Sprint(i))
		text := fmt.Sprintf(`
name                 = "client%d"
data_dir             = %q
bind_addr            = %q
disable_update_check = true
client {
  enabled           = true
  network_interface = "eth0"
  servers           = ["10.77.0.1:4647"]
  # What a task has written goes away with its allocation: none is removed, however full the disk is.
  gc_disk_usage_threshold  = 100
  gc_inode_usage_threshold = 100
}
plugin "raw_exec" {
  config { enabled = true }
}
consul {
  auto_advertise   = false
  client_auto_join = false
  server_auto_join = false
}
`, i, data, m.Address)
		if i == 0 {
			text += "server {\n  enabled = true\n  bootstrap_expect = 1\n}\n"
		}
		config := filepath.Join(c.dir, fmt.Sprintf("agent%d.hcl", i))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		agent := m.Command(t.Context(), path, "agent", "-config", config)
		agent.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out := &transcript.Writer{}
		agent.Stdout, agent.Stderr = out, out
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = agent.Process.Kill()
			_ = agent.Wait()
			if t.Failed() {
				t.Logf("agent %d:\n%s", i, out)
			}
		})
	}
	c.await("all clients are ready", func() bool {
		var nodes []struct{ Status string }
		c.ask("operator", "api", "/v1/nodes").into(&nodes)
		ready := 0
		for _, n := range nodes {
			if n.Status == "ready" {
				ready++
			}
		}
		return ready == len(machines)
	})
	return c
}

// answer is what a command of Nomad's has printed.
type answer []byte

func (a answer) into(v any) { _ = json.Unmarshal(a, v) }

// ask runs a command of Nomad's on the first machine; what fails prints nothing.
func (c *nomadCluster) ask(args ...string) answer {
	cmd := c.machines[0].Command(c.t.Context(), c.path, args...)
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+nomadAPI)
	out, _ := cmd.Output()
	return out
}

// await waits until what is so, or the test's time is over.
func (c *nomadCluster) await(what string, is func() bool) {
	c.t.Helper()
	for !is() {
		select {
		case <-c.t.Context().Done():
			c.t.Fatalf("not so: %s", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// statuses returns how the allocations of a job are, by their indices' names.
func (c *nomadCluster) statuses(job string) (list []string) {
	var all []struct{ Name, ClientStatus string }
	c.ask("operator", "api", "/v1/job/"+job+"/allocations").into(&all)
	for _, a := range all {
		list = append(list, a.ClientStatus)
	}
	return list
}

// output is what all tasks have written.
func (c *nomadCluster) output(stream string) string {
	files, _ := filepath.Glob(filepath.Join(c.dir, "*", "alloc", "*", "alloc", "logs", "impi-node."+stream+".*"))
	var all strings.Builder
	for _, f := range files {
		if strings.Contains(filepath.Base(f), ".fifo") {
			continue
		}
		b, _ := os.ReadFile(f)
		all.Write(b)
	}
	return all.String()
}

// submit runs the commands for Nomad of docs/clusters.md as they are written, but that nodes are
// installed and not in an image, that Nomad itself keeps their services, and that they ask for no
// cores of their own: without cgroups a client has none to give.
func (c *nomadCluster) submit(dir, folder string, commands []string) {
	c.t.Helper()
	for _, command := range commands {
		command = strings.ReplaceAll(command, "-image registry.example/ring:1", "-driver raw_exec")
		cmd := c.machines[0].Command(c.t.Context(), "sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "NOMAD_ADDR="+nomadAPI, "PATH="+dir+":"+folder+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("%s: %v: %s", command, err, out)
		}
		if _, file, found := strings.Cut(command, " > "); found {
			path := filepath.Join(dir, file)
			b, err := os.ReadFile(path)
			if err != nil {
				c.t.Fatal(err)
			}
			text := strings.NewReplacer(`"Provider": "consul"`, `"Provider": "nomad"`, `"Cores": 2`, `"CPU": 100`).Replace(string(b))
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// TestClustersByNomad has real agents of Nomad run both sites of docs/clusters.md, on six machines.
func TestClustersByNomad(t *testing.T) {
	machines := netns.New(t, 6)
	dir, commands := clusterRecipe(t, "nomad.hcl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	install := func(program string) {
		node := fmt.Sprintf("#!/bin/sh\nexport %s=1 %s=%s %s=10.77.0.1:5300\nexec %s \"$@\"\n", asNode, asProgram, program, envDNS, self)
		if err := os.WriteFile(filepath.Join(folder, "impi-node"), []byte(node), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	install("meet")
	t.Setenv(envNomad, nomadAPI)
	c := startNomad(t, machines, folder)
	if err := os.Symlink(c.path, filepath.Join(dir, "nomad")); err != nil {
		t.Fatal(err)
	}
	serveNames(t, machines[0], "10.77.0.1:5300")
	c.submit(dir, folder, commands)
	for _, job := range []string{"alpha", "beta"} {
		c.await("job "+job+" is complete", func() bool {
			list := c.statuses(job)
			for _, s := range list {
				if s == "failed" || s == "lost" {
					t.Fatalf("job %s: %q\n%s%s", job, list, c.output("stdout"), c.output("stderr"))
				}
			}
			return fmt.Sprint(list) == "[complete complete complete]"
		})
	}
	for rank := range 12 {
		if n := strings.Count(c.output("stdout"), fmt.Sprintf("[%d] met\n", rank)); n != 1 {
			t.Errorf("rank %d has met %d times:\n%s", rank, n, c.output("stdout"))
		}
	}

	// To stop one site ends both, and leaves no process.
	install("block")
	for _, job := range []string{"alpha", "beta"} {
		c.ask("job", "stop", "-purge", job) // what is complete is not run again
		c.ask("job", "run", "-detach", "-json", filepath.Join(dir, job+".json"))
	}
	ready := func() int { return strings.Count(c.output("stdout"), "] ready\n") }
	c.await("all ranks are ready", func() bool { return ready() == 12 })
	c.ask("job", "stop", "-detach", "alpha")
	for _, job := range []string{"alpha", "beta"} {
		c.await("nothing of job "+job+" runs", func() bool {
			return !slices.ContainsFunc(c.statuses(job), func(s string) bool { return s == "running" || s == "pending" })
		})
	}
	for _, m := range machines {
		for _, line := range m.Commands(self) {
			if strings.Contains(line, " -config ") { // it is not the name server
				t.Errorf("there is still %s", line)
			}
		}
	}
}
