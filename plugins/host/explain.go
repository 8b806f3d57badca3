package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/plugins/host/rights"
)

// settle is how long explain waits for a process whose start failed to end.
const settle = time.Second

// explain makes the operator's error for a start that failed. It looks at what the process
// did, because go-plugin's errors only say what it was waiting for.
func explain(ctx context.Context, cfg *Config, exe *executable, p *process, cause error) error {
	if _, ok := errors.AsType[*Error](cause); ok {
		return cause
	}
	e := &Error{Plugin: cfg.Name, Path: exe.path, Cause: cause}
	if p == nil || p.cmd.Process == nil {
		return cannotExecute(e)
	}
	timedOut := ctx.Err() != nil || strings.Contains(cause.Error(), "timeout while waiting")
	_ = p.Kill(ctx)
	p.finished(verdict)
	e.Output = p.said.String()
	shake := p.handshake()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.Kind, e.Problem, e.Output = ErrClosed, "its start was cancelled", ""
	case shake != "":
		if !judgeHandshake(cfg, e, shake) {
			e.Kind, e.Problem = ErrProtocol, "completed the handshake but did not answer: "+cause.Error()
			e.Remedy = "see its log; report it to its vendor"
			if timedOut {
				e.Kind = ErrHung
			}
		}
	case strings.Contains(e.Output, "This binary is a plugin"):
		e.Kind, e.Problem = ErrNotPlugin, "is a plugin of another program: it wants another magic cookie"
		e.Remedy = "use a plugin made for impi, or rebuild it with the current sdk"
	case timedOut:
		e.Kind, e.Problem = ErrHung, fmt.Sprintf("sent no handshake within %v", cfg.StartTimeout)
		e.Remedy = "check that it is an impi transport plugin: run it by hand and see what it says"
	default:
		e.Kind, e.Problem = ErrNotPlugin, p.ending()+" without a handshake"
		e.Remedy = "check that it is an impi transport plugin for this machine: run it by hand and see what it says"
	}
	return e
}

func cannotExecute(e *Error) error {
	e.Kind, e.Problem = ErrExec, "cannot be executed: "+e.Cause.Error()
	e.Remedy = "check the file"
	switch {
	case errors.Is(e.Cause, rights.ErrNamespace):
		e.Problem = "cannot have a user namespace of its own, which the kernel does not let this user make: " + e.Cause.Error()
		e.Remedy = "remove user_namespace from its transport block, or have the machine's administrator allow them: " +
			"user.max_user_namespaces above 0, kernel.unprivileged_userns_clone = 1 (Debian), kernel.apparmor_restrict_unprivileged_userns = 0 (Ubuntu), in a container its security profile"
	case errors.Is(e.Cause, syscall.ENOEXEC):
		e.Remedy = "it is no program for this machine: install the one for this architecture"
	case errors.Is(e.Cause, syscall.ENOENT):
		e.Remedy = "its interpreter or dynamic loader is missing on this machine"
	case errors.Is(e.Cause, syscall.EACCES):
		e.Remedy = "its file system may be mounted noexec"
	case errors.Is(e.Cause, syscall.EMFILE), errors.Is(e.Cause, syscall.EAGAIN), errors.Is(e.Cause, syscall.ENOMEM):
		e.Remedy = "raise the limits of this user (ulimit -n -u)"
	}
	return e
}

// judgeHandshake checks the first line that the process wrote to its standard output:
// core|version|network|address|protocol|certificate. It reports whether the line is wrong,
// after it has completed e.
func judgeHandshake(cfg *Config, e *Error, line string) bool {
	parts := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(parts) < 4:
		e.Kind, e.Problem = ErrNotPlugin, fmt.Sprintf("wrote %.80q instead of a handshake", line)
		e.Remedy = "it is no impi transport plugin, or prints to its standard output before it serves"
	case parts[0] != "1":
		e.Kind, e.Problem = ErrVersion, fmt.Sprintf("speaks version %.20q of go-plugin's handshake, this node 1", parts[0])
		e.Remedy = "rebuild the plugin with the current sdk"
	case judgeVersion(e, parts[1]): // judgeVersion has completed e
	case len(parts) < 5 || parts[4] != "grpc":
		e.Kind, e.Problem = ErrVersion, "does not speak gRPC"
		e.Remedy = "rebuild the plugin with the current sdk"
	case !cfg.NoMTLS && !cfg.sharesSecret() && (len(parts) < 6 || len(parts[5]) <= 50):
		e.Kind, e.Problem = ErrMTLS, "does not protect its control connection (AutoMTLS)"
		e.Remedy = "its library must answer PLUGIN_CLIENT_CERT with a certificate (docs/plugin-protocol.md, Control connection); until it does, auto_mtls = false in its transport block goes without it (docs/plugin-guide.md)"
	default:
		return false
	}
	return true
}
