package sshtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// StartOn runs a real sshd on port 22 of each machine, with a /run of its own, and returns the
// ssh_config with which the user of the test can log in from each of them to the others. Everything
// ends with the machines. Logins have another home directory there, so that the shell does not run
// that user's files: a .bashrc has been seen to wait for a minute.
func StartOn(tb daemons.TB, machines []*netns.Machine) (config string) {
	tb.Helper()
	keygen := skips.ProgramOf(tb, "ssh-keygen", "openssh-client")
	sshd := skips.ProgramOf(tb, "sshd", "openssh-server")
	dir := tb.TempDir()
	for _, key := range []string{"host", "user"} {
		daemons.Run(tb, nil, keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
	}
	public, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		tb.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	passwd := file("passwd", fmt.Sprintf("root:x:0:0:root:%s:/bin/sh\nsshd:x:%d:%[2]d::/run/sshd:/bin/false\n", dir, UID))
	var known strings.Builder
	for _, m := range machines {
		fmt.Fprintf(&known, "%s %s", m.Address, public)
	}
	file("known", known.String())
	config = file("config", fmt.Sprintf("Host *\n  IdentityFile %s/user\n  IdentitiesOnly yes\n  UserKnownHostsFile %[1]s/known\n  GlobalKnownHostsFile none\n", dir))
	for _, m := range machines {
		conf := file(m.Address+".conf", fmt.Sprintf(`ListenAddress %s
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
`, m.Address, dir))
		m.Copy(dir)
		listens(tb, m.Command(tb.Context(), "sh", "-c", "mount -t tmpfs none /run && mkdir /run/sshd && mount --bind "+passwd+" /etc/passwd && exec "+sshd+" -D -e -f "+conf))
	}
	return config
}

func listens(tb daemons.TB, cmd *exec.Cmd) {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = r.Close()
	})
	said := ""
	lines := bufio.NewReader(r)
	for !strings.Contains(said, "Server listening on") {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			tb.Fatalf("sshd: %v: %s", err, said)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
}
