package childconfig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Placeholder is replaced in the arguments of a command by the path of the
// child's document.
const Placeholder = "{child_config}"

// defaultDir is tried before the directory for temporary files.
const defaultDir = "/run/sf2loki-ha"

// Wanted tells whether an argument of the command has the placeholder.
func Wanted(command []string) bool {
	for _, arg := range command[min(1, len(command)):] {
		if strings.Contains(arg, Placeholder) {
			return true
		}
	}
	return false
}

// Command returns a copy of the command with the path in its arguments.
func Command(command []string, path string) []string {
	out := make([]string, len(command))
	for i, arg := range command {
		if i > 0 {
			arg = strings.ReplaceAll(arg, Placeholder, path)
		}
		out[i] = arg
	}
	return out
}

// Write writes the document to a new file that only this user can read, in dir or,
// if that is empty, where it is possible, and returns its path.
func Write(dir string, document []byte) (string, error) {
	dirs := []string{dir}
	if dir == "" {
		dirs = []string{defaultDir, os.TempDir()}
	}
	var errs []error
	for _, dir := range dirs {
		path, err := write(dir, document)
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("configuration of the command: %w; set service.runtime_dir to a writable directory", errors.Join(errs...))
}

func write(dir string, document []byte) (string, error) {
	f, err := os.CreateTemp(dir, "child-*.yaml") // mode 0600, a name that nobody has
	if err != nil {
		return "", err
	}
	_, err = f.Write(document)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// FreeAddr returns a loopback address that nobody listens on at this moment.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("free port for the command: %w", err)
	}
	return l.Addr().String(), l.Close()
}
