package sdk

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// The standard output has the handshake and nothing else, and the process ends with its channel.
func TestHandshake(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	node, plugin := os.NewFile(uintptr(pair[0]), "node"), os.NewFile(uintptr(pair[1]), "plugin")
	defer node.Close()
	dir := t.TempDir()
	var log strings.Builder
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "IMPI_TEST_SERVE=1", proto.CookieKey+"="+proto.CookieValue, envVersions+"=1,2", envSocketDir+"="+dir)
	cmd.ExtraFiles = []*os.File{plugin}
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	plugin.Close()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "1|2|unix|"+filepath.Join(dir, "plugin")) || !strings.HasSuffix(lines.Text(), "|grpc|") {
		t.Errorf("the handshake is %q, %v", lines.Text(), lines.Err())
	}
	node.Close()
	if lines.Scan() {
		t.Errorf("the node also reads %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if !strings.Contains(log.String(), "1|7|unix|") {
		t.Errorf("what the plugin prints is not in its log:\n%s", log.String())
	}
}

// The highest version that both have is spoken.
func TestAgreed(t *testing.T) {
	for _, c := range []struct {
		ours    []int
		offered string
		want    int
	}{
		{[]int{1, 2}, "1,2", 2}, {[]int{2, 1}, "2,1", 2}, {[]int{1, 2}, "1", 1}, {[]int{1}, "1,2", 1},
		{[]int{2, 3}, "1,2", 2}, {[]int{3, 4}, "1,2", 3}, {[]int{1, 2}, "", 1}, {[]int{1, 2}, "12", 1},
	} {
		if got := agreed(c.ours, c.offered); got != c.want {
			t.Errorf("%v with %q: %d, want %d", c.ours, c.offered, got, c.want)
		}
	}
}

// A certificate of the node that is none ends the start with the variable's name.
func TestNodeWithoutCertificate(t *testing.T) {
	if _, _, err := mutual([]byte("no PEM")); err == nil || !strings.Contains(err.Error(), envClientCert) {
		t.Error(err)
	}
}
