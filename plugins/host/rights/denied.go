package rights

import "golang.org/x/sys/unix"

// denied are system calls that no plugin needs to move bytes, grouped by what they would be used
// for. They fail with EPERM, as they do for most users anyway, so that programs that have another
// way use it.
var denied = map[string]uintptr{
	// Other processes: their memory, their registers, their files.
	"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
	"process_madvise": unix.SYS_PROCESS_MADVISE, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "kcmp": unix.SYS_KCMP, "migrate_pages": unix.SYS_MIGRATE_PAGES,

	// The tree of files, and namespaces.
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
	"move_mount": unix.SYS_MOVE_MOUNT, "open_tree": unix.SYS_OPEN_TREE, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "fsopen": unix.SYS_FSOPEN,
	"fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK, "mount_setattr": unix.SYS_MOUNT_SETATTR,
	"setns": unix.SYS_SETNS, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "fanotify_init": unix.SYS_FANOTIFY_INIT,
	"quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD, "swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF,

	// Owners and attributes of files, which Landlock does not protect.
	"fchown": unix.SYS_FCHOWN, "fchownat": unix.SYS_FCHOWNAT, "setxattr": unix.SYS_SETXATTR, "lsetxattr": unix.SYS_LSETXATTR,
	"fsetxattr": unix.SYS_FSETXATTR, "setxattrat": unix.SYS_SETXATTRAT, "removexattr": unix.SYS_REMOVEXATTR, "lremovexattr": unix.SYS_LREMOVEXATTR,
	"fremovexattr": unix.SYS_FREMOVEXATTR, "removexattrat": unix.SYS_REMOVEXATTRAT, "file_setattr": unix.SYS_FILE_SETATTR,

	// The kernel itself: its code, its clock, what it records, keys.
	"kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "init_module": unix.SYS_INIT_MODULE,
	"finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE, "reboot": unix.SYS_REBOOT, "bpf": unix.SYS_BPF,
	"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
	"nfsservctl": unix.SYS_NFSSERVCTL, "acct": unix.SYS_ACCT, "syslog": unix.SYS_SYSLOG, "vhangup": unix.SYS_VHANGUP,
	"sethostname": unix.SYS_SETHOSTNAME, "setdomainname": unix.SYS_SETDOMAINNAME, "settimeofday": unix.SYS_SETTIMEOFDAY,
	"clock_settime": unix.SYS_CLOCK_SETTIME, "adjtimex": unix.SYS_ADJTIMEX, "clock_adjtime": unix.SYS_CLOCK_ADJTIME,
	"add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY, "keyctl": unix.SYS_KEYCTL,
}

// missing are system calls that fail with ENOSYS, so that programs use what there was before them.
// By io_uring a process could do what is denied, such as setting attributes of files: a filter does
// not see what is in a ring.
var missing = map[string]uintptr{
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER,
}

// ofOthers are calls that change how another process is scheduled, and that no library needs for
// its own threads. They are allowed for the calling thread only: when its first argument is which,
// and the argument at this offset is 0. sched_setaffinity and sched_setscheduler are not among
// them: by these, with numbers of threads, pthread_create and others set what their caller wants
// for a thread.
var ofOthers = []struct {
	name   string
	number uintptr
	which  uint32
	at     uint32
}{
	{"setpriority", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, atArg1},
	{"ioprio_set", unix.SYS_IOPRIO_SET, ioprioProcess, atArg1},
	{"sched_setattr", unix.SYS_SCHED_SETATTR, 0, atArg0},
}

// ioprioProcess is the kernel's IOPRIO_WHO_PROCESS, which package unix does not have.
const ioprioProcess = 1

// Namespaces that clone and unshare create, by their flags. The flag of the time namespace lies in
// the part of clone's flags that selects the signal for a child's end.
const (
	otherSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	userSpace   = unix.CLONE_NEWUSER
	timeSpace   = unix.CLONE_NEWTIME
)

// Commands of ioctl by which a process types into its terminal.
var typing = []uint32{unix.TIOCSTI, unix.TIOCLINUX}
