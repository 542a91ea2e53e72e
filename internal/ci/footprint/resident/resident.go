// Package resident prints the resident memory of the process it is called in.
package resident

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Print prints VmRSS in kB while keep is still in use.
func Print(keep any) {
	status, err := os.ReadFile("/proc/self/status")
	Must(err)
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Println(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
		}
	}
	runtime.KeepAlive(keep)
}

// Must ends the process if err is not nil.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}
