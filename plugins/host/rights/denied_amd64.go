package rights

import "golang.org/x/sys/unix"

const (
	machine = unix.AUDIT_ARCH_X86_64
	// otherNumbers is where the numbers of another form of system calls begin (x32), for which
	// those in denied do not hold; 0 means that there is none.
	otherNumbers = 0x40000000
)

// deniedHere are those of denied that other machines do not have.
var deniedHere = map[string]uintptr{
	"chown": unix.SYS_CHOWN, "lchown": unix.SYS_LCHOWN, "iopl": unix.SYS_IOPL, "ioperm": unix.SYS_IOPERM, "uselib": unix.SYS_USELIB,
	"create_module": unix.SYS_CREATE_MODULE, "get_kernel_syms": unix.SYS_GET_KERNEL_SYMS, "query_module": unix.SYS_QUERY_MODULE,
	"_sysctl": unix.SYS__SYSCTL, "modify_ldt": unix.SYS_MODIFY_LDT,
}
