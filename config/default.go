package config

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The values of attributes that the file does not set.
const (
	DefaultStart = 60 * time.Second // Limits.Start
	DefaultStop  = 10 * time.Second // Limits.Stop

	DefaultResume = 30 * time.Second // Limits.Resume

	DefaultSilence = 10 * time.Second // Limits.Silence

	DefaultDataLen = 262144
	DefaultAckMark = 32
	DefaultHiWater = 128
	DefaultTagUB   = 1<<31 - 1

	DefaultUnexpected = 64 << 20 // Protocol.Unexpected
)

func defaultProtocol() Protocol {
	return Protocol{
		DataLen:    DefaultDataLen,
		AckMark:    DefaultAckMark,
		HiWater:    DefaultHiWater,
		TagUB:      DefaultTagUB,
		Unexpected: DefaultUnexpected,
		XSize:      -1, MaxLinear: -1,
		Dialect: Published, IPv4: IPv4Compatible,
	}
}

func defaultLimits() Limits {
	return Limits{Start: DefaultStart, Stop: DefaultStop, Resume: DefaultResume, Silence: DefaultSilence}
}

func defaultLog() Log { return Log{Level: "info", Format: "text"} }

// Default is the job of a command line without a file: one site called "local"
// on 127.0.0.1, with procs procs that run command, the server embedded, a
// random key and the built-in transports. A command that cannot be found has an
// empty Program.Path.
func Default(procs int, command []string, builtins []Builtin) *Job {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // the folder was removed; exec will report it
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	path, _, _ := findCommand(dir, command[0], command[0])
	site := Site{
		Name: "local",
		Server: Server{
			Embedded: true,
			Address:  netip.AddrPortFrom(loopback, 0),
			Clients:  1,
			Timeout:  DefaultStart,
		},
		Auth:     Auth{Random: true},
		Hosts:    []Host{{Address: loopback, Procs: procs}},
		Program:  Program{Command: command, Path: path, Dir: dir, PrefixOutput: true},
		Protocol: defaultProtocol(),
		Labels:   Labels{Versions: []Version{{}, OwnVersion}},
		Wait:     Wait{Auto: true},
		Log:      defaultLog(),
		Spawn:    Spawn{Slots: DefaultSlots},
	}
	for _, x := range builtins {
		if !x.NeedsBlock {
			site.Transports = append(site.Transports, Transport{Name: x.Name, Builtin: true, Known: x})
		}
	}
	return &Job{Dir: dir, Sites: []Site{site}, Complete: true, Limits: defaultLimits(), Builtins: builtins}
}

// findCommand returns the absolute path of a command whose relative form starts
// from dir, or what is wrong with it; shown is how messages call it.
func findCommand(dir, command, shown string) (path, problem, remedy string) {
	if !strings.Contains(command, "/") {
		path, err := exec.LookPath(command)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", "no program " + quote(command) + " is in PATH",
				"write a path with a slash, like " + quote("./"+command) + ", or install it"
		}
		return path, "", ""
	}
	path = absolute(dir, command)
	problem, remedy = executableFault(path, shown)
	if problem != "" {
		return "", problem, remedy
	}
	return path, "", ""
}

// executableFault says why the file at path cannot be run; shown is how the
// messages call it.
func executableFault(path, shown string) (problem, remedy string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "there is no program " + quote(shown), "build it, or correct the path"
	case info.IsDir():
		return quote(shown) + " is a folder", "name the program in it"
	case info.Mode()&0o111 == 0:
		return quote(shown) + " is not executable", "chmod +x " + shown
	}
	return "", ""
}

// readableFault says why the file at path cannot be read; shown is how the messages call it.
func readableFault(path, shown string) (problem, remedy string) {
	f, err := os.Open(path)
	if err != nil {
		return "cannot read " + quote(shown) + ": " + reason(err), "correct the path"
	}
	_ = f.Close()
	return "", ""
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
