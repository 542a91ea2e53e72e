package boottime

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const printNow = "SF2LOKI_HA_BOOTTIME_PRINT"

// TestMain turns the process into one that prints the clock, if it was started
// as one.
func TestMain(m *testing.M) {
	if os.Getenv(printNow) != "" {
		fmt.Println(int64(Now()))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func read(t *testing.T, clock int32) Instant {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		t.Fatal(err)
	}
	return Instant(ts.Nano())
}

func TestNowIsTheBootTimeClock(t *testing.T) {
	for range 1000 {
		before := read(t, unix.CLOCK_BOOTTIME)
		now := Now()
		if after := read(t, unix.CLOCK_BOOTTIME); now < before || now > after {
			t.Fatalf("%d is not between %d and %d", now, before, after)
		}
	}
}

// On a machine that was suspended the boot-time clock is ahead of the monotonic
// one. A time namespace makes such a machine: its boot-time clock, and no other,
// is an hour ahead. The supervisor there must see that hour.
func TestNowCountsTheTimeInWhichTheMachineSlept(t *testing.T) {
	const slept = time.Hour
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--user", "--map-root-user", "--time", "--boottime", strconv.Itoa(int(slept.Seconds())), "--fork"}
	if out, err := exec.Command("unshare", append(args, "true")...).CombinedOutput(); err != nil {
		// Not everybody may make namespaces; the clock itself is tested above.
		t.Logf("no time namespace here (%v: %s): what a suspend does was not tested", err, strings.TrimSpace(string(out)))
		return
	}
	before := read(t, unix.CLOCK_BOOTTIME)
	cmd := exec.Command("unshare", append(args, self)...)
	cmd.Env = append(os.Environ(), printNow+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	after := read(t, unix.CLOCK_BOOTTIME)
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if now := Instant(n); now < before.Add(slept) || now > after.Add(slept) {
		t.Errorf("the clock of a machine that slept %v shows %v more than ours, want the time it slept", slept, now.Sub(before))
	}
}
