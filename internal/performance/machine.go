package performance

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ThisMachine describes this machine. Properties that cannot be found out are left empty.
func ThisMachine() Machine {
	m := Machine{CPU: "unknown processor", Cores: runtime.NumCPU(), Go: runtime.Version(), Load: "unknown"}
	if s := field("/proc/cpuinfo", "model name"); s != "" {
		m.CPU = strings.Join(strings.Fields(s), " ")
	}
	if kb, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.Memory = fmt.Sprintf("%d GiB", (kb+1<<19)>>20)
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
		m.Kernel, _, _ = strings.Cut(m.Kernel, "-")
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
	}
	for name, args := range map[string][]string{"MPICH": {"mpichversion"}, "Open MPI": {"mpiexec.openmpi", "--version"}} {
		out, err := exec.Command(args[0], args[1:]...).Output()
		if v := version.FindString(string(out)); err == nil && v != "" {
			m.Peers = append(m.Peers, name+" "+v)
		}
	}
	return m
}

var version = regexp.MustCompile(`\d+\.\d+[.\w]*`)

func field(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
