// Package sshtest runs real sshd on loopback addresses for a test, with keys and settings of their
// own, as a user that is not root.
package sshtest

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/skips"
)

// User is the user to log in as. Only these sshd know the name.
const User = "impitest"

// UID is User's number, which no account of Debian has.
const UID = 64999

// Hosts are machines that can be reached by ssh: s1, s2, ... at 127.0.0.21, 127.0.0.22, ..., by
// their names or their addresses.
type Hosts struct {
	*daemons.Group

	Names  []string
	Config string // ssh -F: the hosts, the user, the key, the keys of the hosts
}

// Start starts an sshd for each host, and waits until they listen. They end with the test, with all
// that they have started. If OpenSSH is not installed the test is skipped.
func Start(tb daemons.TB, hosts int) *Hosts {
	tb.Helper()
	keygen := skips.ProgramOf(tb, "ssh-keygen", "openssh-client")
	sshd := skips.ProgramOf(tb, "sshd", "openssh-server")
	skips.ProgramOf(tb, "setpriv", "util-linux")
	g := daemons.New(tb, "ssh")
	h := &Hosts{Group: g}
	for _, key := range []string{"host", "user"} {
		daemons.Run(tb, nil, keygen, "-q", "-t", "ed25519", "-N", "", "-f", g.Dir+"/"+key)
	}
	authorized, err := os.ReadFile(g.Dir + "/user.pub")
	if err == nil {
		err = os.Chown(g.Dir+"/host", UID, UID)
	}
	if err != nil {
		tb.Fatal(err)
	}
	g.File("authorized", string(authorized), 0o644)
	g.File("passwd", fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\n%s:x:%d:%d::%s:/bin/sh\n", User, UID, UID, g.Dir), 0o644)
	g.Do("mount --bind passwd /etc/passwd")

	public, err := os.ReadFile(g.Dir + "/host.pub")
	if err != nil {
		tb.Fatal(err)
	}
	var config, known strings.Builder
	for n := 1; n <= hosts; n++ {
		name, at := fmt.Sprintf("s%d", n), free(tb, fmt.Sprintf("127.0.0.%d", 20+n))
		h.Names = append(h.Names, name)
		fmt.Fprintf(&config, "Host %s %s\n  HostName %[2]s\n  Port %[3]d\n", name, at.IP, at.Port)
		fmt.Fprintf(&known, "[%s]:%d %s\n", at.IP, at.Port, strings.Join(strings.Fields(string(public))[:2], " "))
		conf := g.File(name+".conf", fmt.Sprintf(`ListenAddress %v
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
`, at, g.Dir), 0o644)
		g.Machine(name, fmt.Sprintf("setpriv --reuid %d --regid %[1]d --clear-groups %s -D -e -f %s", UID, sshd, conf))
	}
	fmt.Fprintf(&config, "Host *\n  User %s\n  IdentityFile %s/user\n  IdentitiesOnly yes\n  UserKnownHostsFile %[2]s/known\n  GlobalKnownHostsFile none\n", User, g.Dir)
	g.File("known", known.String(), 0o644)
	h.Config = g.File("config", config.String(), 0o644)
	g.Await("Server listening on", hosts)
	return h
}

func free(tb daemons.TB, host string) *net.TCPAddr {
	tb.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}
