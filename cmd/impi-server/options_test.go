package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
)

// env makes an environment of name=value.
func env(vars ...string) environment {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestParseAuth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		env  environment
		want startup.Auth
	}{
		{"-auth none", env(), startup.Auth{None: true}},
		{"-auth none", env("IMPI_AUTH_KEY=5"), startup.Auth{None: true}},
		{"-auth key", env("IMPI_AUTH_KEY=5"), startup.Auth{HasKey: true, Key: 5}},
		{"-auth key", env("IMPI_AUTH_KEY=5", "IMPI_AUTH_NONE=1"), startup.Auth{HasKey: true, Key: 5}},
		{"-auth key -key-file " + file, env("IMPI_AUTH_KEY=5"), startup.Auth{HasKey: true, Key: 7}},
		{"-key-file " + file, env("IMPI_AUTH_NONE=1"), startup.Auth{HasKey: true, Key: 7}},
		{"", env("IMPI_AUTH_NONE="), startup.Auth{None: true}},
		{"", env("IMPI_AUTH_KEY=18446744073709551615"), startup.Auth{HasKey: true, Key: 1<<64 - 1}},
		{"", env("IMPI_AUTH_KEY=5", "IMPI_AUTH_NONE=0"), startup.Auth{None: true, HasKey: true, Key: 5}},
	} {
		o, err := parse(strings.Fields("-clients 2 "+c.args), c.env)
		if err != nil || o.auth != c.want {
			t.Errorf("%s: %+v, %v", c.args, o, err)
		}
	}
}

// A key may come from a program that keeps secrets, by a pipe.
func TestKeyByPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "key")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("7\n"), 0o600) }()
	o, err := parse([]string{"-clients", "2", "-key-file", pipe}, env())
	if err != nil || !o.auth.HasKey || o.auth.Key != 7 {
		t.Errorf("%+v, %v", o, err)
	}
}

// parse reads a command line.
func parse(args []string, env environment) (*options, error) {
	c, o := newCommand(env)
	_, err := c.Parse(args)
	return o, err
}

func TestParseDefaults(t *testing.T) {
	o, err := parse([]string{"--clients", "32", "-auth", "none"}, env())
	if err != nil || o.clients != 32 || o.port != 0 || o.timeout != 60*time.Second || o.json || o.host != "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestParseFaults: each says which flag it is and what to write instead.
func TestParseFaults(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "-clients is missing",
		"-clients 33":                    "-clients 33: a job has 1 to 32",
		"-clients 0":                     "-clients 0: a job has 1 to 32",
		"-clients -1":                    "-clients -1",
		"-clients two":                   "invalid value \"two\" for flag -clients",
		"-clients 2 -port 65536":         "-port 65536",
		"-clients 2 -port 9-8":           "-port 9-8: write a TCP port, 0 (any) to 65535, or a range",
		"-clients 2 -timeout 0s":         "-timeout 0s: write a time such as 60s",
		"-clients 2 -timeout 60":         "-timeout",
		"-clients 2 -log-level loud":     "-log-level \"loud\": write trace",
		"-clients 2 -cert a.pem":         "-cert, -key and -ca belong together",
		"-clients 2 -resume -1s":         "-resume -1s: write a time",
		"-names -auth none -require-tls": "cannot be used with -names",
		"-clients 2 -cert no.pem -key no.key -ca no.pem": "there is no file no.pem",
		"-clients 2 -auth maybe":                         "-auth \"maybe\": write none or key",
		"-clients 2":                                     "say how clients prove",
		"-clients 2 -auth key":                           "-auth key: give the key by -key-file, or in IMPI_AUTH_KEY",
		"-clients 2 -key-file /nonexistent":              "-key-file: open /nonexistent",
		"-clients 2 -auth none -key-file x":              "-key-file cannot be used",
		"-clients 2 -auth none extra":                    "this command takes only flags",
		"-clients 2 -verbose":                            "-verbose",
		"-names -clients 2 -auth none":                   "-clients cannot be used with -names",
		"-names -timeout 5s -auth none":                  "-timeout cannot be used with -names",
		"-names":                                         "say how clients prove",
	} {
		if _, err := parse(strings.Fields(args), env()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	_, err := parse([]string{"-clients", "2"}, env("IMPI_AUTH_KEY=0x16"))
	if err == nil || !strings.Contains(err.Error(), "IMPI_AUTH_KEY") || strings.Contains(err.Error(), "0x16") {
		t.Errorf("a hexadecimal key: %v", err)
	}
}

// TestOpenKey: a key that others can read gets a warning.
func TestOpenKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.key")
	if err := os.WriteFile(file, []byte("77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o644: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		p := start(t, nil, "-clients", "1", "-key-file", file, "-host", "127.0.0.1", "-timeout", "10ms")
		p.end(t)
		if got := strings.Contains(p.stderr.String(), "others can read the key") && strings.Contains(p.stderr.String(), "chmod 600 "+file); got != want {
			t.Errorf("mode %04o:\n%s", mode, p.stderr.String())
		}
	}
}
