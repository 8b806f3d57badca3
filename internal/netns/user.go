package netns

import (
	"context"
	"os/exec"
)

// asRoot makes a folder for the names of network namespaces, since the usual one is another root's.
const asRoot = `mount -t tmpfs none /run && exec "$@"`

// AsRoot returns a command that runs a program as the root of a user namespace of its own, so that
// it may make machines though its user is not root. It needs unshare, and a kernel that lets users
// create user namespaces; otherwise the command fails. What the program makes is removed at its
// end.
func AsRoot(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "unshare", append([]string{
		"--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", asRoot, "sh", program,
	}, args...)...)
}
