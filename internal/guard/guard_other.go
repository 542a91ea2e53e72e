//go:build !linux

package guard

import (
	"fmt"
	"os"
	"runtime"
)

// Main is the hidden verb "guard". Without CLOCK_BOOTTIME timers, subreapers
// and the parent death signal nothing here could hold what the package
// promises, so it starts nothing.
func Main([]string) int {
	fmt.Fprintf(os.Stderr, "guard: running a command needs Linux (this is %s)\n", runtime.GOOS)
	return 2
}
