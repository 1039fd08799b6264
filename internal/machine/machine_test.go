package machine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// What the machine is to blame for begins with its name, whatever wraps the error; what a bridge does is never its fault.
func TestFault(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOSPC} {
		err := fmt.Errorf("cannot connect: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", errno)})
		why := Fault(err)
		must.Expect(t, strings.HasPrefix(why, "the machine") && strings.ContainsAny(why, ":"), "%v: %q", errno, why)
	}
	for _, err := range []error{nil, errors.New("x"), syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded} {
		must.Equal(t, Fault(err), "", "%v is blamed on the machine", err)
	}
}

func TestWorkersAreAtLeastOneAndAtMostThoseWanted(t *testing.T) {
	for _, wanted := range []int{1, 4, 12} {
		n, why := Workers(wanted)
		must.Expect(t, n >= 1 && n <= wanted && (n >= wanted || why != ""), "%d of %d workers: %q", n, wanted, why)
	}
}

// What lives decides how much garbage there may be beside it: the heap stays within its bytes where that does not mean to collect
// all the time.
func TestGarbageLeavesTheHeapWithinItsBytes(t *testing.T) {
	const most = 96 << 20
	for live, want := range map[uint64]int{0: mostGarbage, 10 << 20: mostGarbage, 32 << 20: 200, 48 << 20: 100, 90 << 20: leastGarbage, 300 << 20: leastGarbage} {
		must.Equal(t, garbage(live, most), want, "per cent of garbage with %d MiB live", live>>20)
	}
}
