package replica

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// breakListener makes the socket that listens on addr fail, as an operating
// system does that takes it away.
func breakListener(t *testing.T, addr string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on != 1 {
			continue
		}
		sa, err := unix.Getsockname(fd)
		if in, ok := sa.(*unix.SockaddrInet4); err == nil && ok && fmt.Sprintf("127.0.0.1:%d", in.Port) == addr {
			if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("nothing listens on %s", addr)
}
