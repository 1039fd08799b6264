package machine

import (
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ports is how many ports the system chooses from for connections.
func ports() uint64 {
	var low, high uint64
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if _, err2 := fmt.Sscan(string(text), &low, &high); err != nil || err2 != nil || high < low {
		return math.MaxUint64
	}
	return high - low + 1
}

// threads is how many threads this user, who is not root, may have in all processes, or the control group of this process.
func threads() uint64 {
	least := leastOfGroups("pids", "pids.max")
	if os.Geteuid() != 0 {
		least = min(least, limit(unix.RLIMIT_NPROC))
	}
	return least
}

// free is how many bytes may be written below a directory, which may not be there yet.
func free(dir string) uint64 {
	var s syscall.Statfs_t
	for err := syscall.Statfs(dir, &s); err != nil; err = syscall.Statfs(dir, &s) {
		above := filepath.Dir(dir)
		if above == dir {
			return math.MaxUint64
		}
		dir = above
	}
	return s.Bavail * uint64(s.Bsize)
}

// reserved is how much address space this process has taken, in bytes.
func reserved() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	pages, _ := strconv.ParseUint(first, 10, 64)
	return pages * uint64(os.Getpagesize())
}

// Memory is how much memory the control groups of this process give it, in bytes; the most there is where they give no limit.
func Memory() uint64 {
	return min(leastOfGroups("memory", "memory.max"), leastOfGroups("memory", "memory.limit_in_bytes"))
}

// leastOfGroups is the least number in a file of the control groups of this process; the most there is where none has a limit.
func leastOfGroups(controller, file string) uint64 {
	least := uint64(math.MaxUint64)
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root := "/sys/fs/cgroup"
		switch {
		case slices.Contains(strings.Split(fields[1], ","), controller): // the first version
			root = path.Join(root, controller)
		case fields[1] != "":
			continue
		}
		for dir := fields[2]; ; dir = path.Dir(dir) { // a limit of a group above counts, too; in a container the path may not be there
			text, err := os.ReadFile(path.Join(root, dir, file))
			if n, err2 := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && err2 == nil {
				least = min(least, n)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return least
}
