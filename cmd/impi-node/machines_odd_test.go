package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
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
		if log := nodes[head].err.String(); !strings.Contains(log, " was not reached: from 192.168.5.") || !strings.Contains(log, " at 192.168.5.") || strings.Contains(log, "5m0s") {
			t.Errorf("the head on machine %d does not name both addresses:\n%s", head, log)
		}
	}
}
