package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/openimpi/impi/core/dynamic"
)

// machine names the kernel, the user and the network namespace of this process. Two processes with
// the same name can reach each other by transports that do not leave a machine. It is a hash, as it
// goes to other sites. If the kernel does not tell these things it is empty, which is equal to no
// other's.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "impi machine %s %d %s", strings.TrimSpace(string(boot)), os.Getuid(), ns))
	return hex.EncodeToString(sum[:16])
}

// ByteOrder returns the order of this machine's integers, as business cards name it.
func ByteOrder() string {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) == 1 {
		return dynamic.LittleEndian
	}
	return dynamic.BigEndian
}
