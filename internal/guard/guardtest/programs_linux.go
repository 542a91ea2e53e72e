package guardtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// programs are what [Program] can name. Each prints "ready NAME PID" on stdout
// once it is at work.
var programs = map[string]func(args []string) int{
	"act":      act,
	"stubborn": stubborn,
	"tidy":     tidy,
	"family":   family,
	"leave":    leave,
	"exit":     exit,
	"comet":    comet,
	"storm":    storm,
	"inspect":  inspect,
}

// pace is the time between two acts.
const pace = 2 * time.Millisecond

func ready(name string) { fmt.Printf("ready %s %d\n", name, os.Getpid()) }

// witness appends one line per act, for ever.
func witness(file, name string, stop <-chan os.Signal) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	beat := time.NewTicker(pace)
	defer beat.Stop()
	fmt.Fprintf(f, "%d\n", boottime.Now())
	ready(name)
	for {
		select {
		case <-stop:
			return
		case <-beat.C:
			fmt.Fprintf(f, "%d\n", boottime.Now())
		}
	}
}

// act FILE: acts until a signal ends it the usual way.
func act(args []string) int {
	witness(args[0], "act", nil)
	return 0
}

// stubborn FILE: acts and ignores SIGTERM, SIGINT and SIGHUP.
func stubborn(args []string) int {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	witness(args[0], "stubborn", nil)
	return 0
}

// tidy FILE PAUSE: acts; on each SIGTERM prints "term", on SIGHUP, SIGUSR1 and
// SIGUSR2 "got"; PAUSE after the first SIGTERM it prints "clean" and exits with 0.
func tidy(args []string) int {
	pause, err := time.ParseDuration(args[1])
	if err != nil {
		panic(err)
	}
	got, first := make(chan os.Signal, 8), make(chan os.Signal, 8)
	signal.Notify(got, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for sig := range got {
			if sig == unix.SIGTERM {
				fmt.Println("term", sig)
				break
			}
			fmt.Println("got", sig)
		}
		first <- unix.SIGTERM
		over := time.After(pause)
		for {
			select {
			case sig := <-got:
				fmt.Println("term", sig)
			case <-over:
				fmt.Println("clean")
				return
			}
		}
	}()
	witness(args[0], "tidy", first)
	<-finished
	return 0
}

// family DIR: acts in DIR/parent and has three stubborn descendants: one in its
// group, one with a session of its own, one orphaned by a parent that left.
func family(args []string) int {
	dir := args[0]
	launch(nil, "stubborn", filepath.Join(dir, "kin"))
	launch(&syscall.SysProcAttr{Setsid: true}, "stubborn", filepath.Join(dir, "escapee"))
	launch(nil, "leave", filepath.Join(dir, "orphan"))
	witness(filepath.Join(dir, "parent"), "family", nil)
	return 0
}

// Members are the files that the program family acts in.
func Members(dir string) []string {
	var files []string
	for _, name := range []string{"parent", "kin", "escapee", "orphan"} {
		files = append(files, filepath.Join(dir, name))
	}
	return files
}

// leave FILE: starts a stubborn process in a session of its own and exits with
// 0 as soon as that one acts.
func leave(args []string) int {
	launch(&syscall.SysProcAttr{Setsid: true}, "stubborn", args[0])
	for {
		if info, err := os.Stat(args[0]); err == nil && info.Size() > 0 {
			return 0
		}
		<-time.After(pace)
	}
}

// exit CODE: exits at once.
func exit(args []string) int {
	code, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	ready("exit")
	return code
}

// comet FILE [UNTIL]: acts once, starts the next comet in a session of its own
// and ends, for at most 30 seconds.
func comet(args []string) int {
	if len(args) == 1 {
		ready("comet")
		args = append(args, fmt.Sprint(int64(boottime.Now().Add(30*time.Second))))
	}
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	now := boottime.Now()
	fmt.Fprintf(f, "%d\n", now)
	f.Close()
	if until, err := strconv.ParseInt(args[1], 10, 64); err != nil || now >= boottime.Instant(until) {
		return 1
	}
	launch(&syscall.SysProcAttr{Setsid: true}, "comet", args...)
	return 0
}

// storm DIR DEPTH: a stubborn process that has three of its kind for children,
// each in a session of its own, DEPTH times.
func storm(args []string) int {
	depth, err := strconv.Atoi(args[1])
	if err != nil {
		panic(err)
	}
	if depth > 0 {
		for range 3 {
			launch(&syscall.SysProcAttr{Setsid: true}, "storm", args[0], strconv.Itoa(depth-1))
		}
	}
	signal.Ignore(unix.SIGTERM)
	witness(filepath.Join(args[0], strconv.Itoa(os.Getpid())), "storm", nil)
	return 0
}

// Inspection is what a child sees of its own situation.
type Inspection struct {
	PID, Parent, Group, Session int
	FDs                         map[int]string // open descriptors and their targets
	Ignored                     []string       // signals that were ignored at start
	Blocked                     string         // SigBlk of /proc/self/status
	Env                         []string
	Args                        []string
}

// inspect FILE: writes an [Inspection] into FILE and exits with 0.
func inspect(args []string) int {
	seen := Inspection{
		PID: os.Getpid(), Parent: os.Getppid(), Group: unix.Getpgrp(),
		FDs: Descriptors(), Env: os.Environ(), Args: os.Args,
	}
	seen.Session, _ = unix.Getsid(0)
	for sig := unix.Signal(1); sig < 32; sig++ {
		if signal.Ignored(sig) {
			seen.Ignored = append(seen.Ignored, unix.SignalName(sig))
		}
	}
	text, err := json.Marshal(seen)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(args[0], text, 0o600); err != nil {
		panic(err)
	}
	ready("inspect")
	return 0
}

// Descriptors lists what this process would pass on through exec, with the
// targets. What the Go runtime opened for itself is closed on exec.
func Descriptors() map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		fd, _ := strconv.Atoi(entry.Name())
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		found[fd] = target
	}
	return found
}

// launch starts another of the programs as a child that nobody waits for.
func launch(attr *syscall.SysProcAttr, name string, args ...string) {
	command := Program(name, args...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "guardtest:", err)
	}
}
