package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
)

// maxFile is the largest configuration file read: a pipe or a device given by
// mistake must not fill the memory.
const maxFile = 1 << 20

// loader carries what one Load collects.
type loader struct {
	env      environment
	problems []Problem
	// bad are keys whose value was reported already, so that their default is
	// not judged in its place.
	bad    map[string]bool
	others map[string]origin
}

func (l *loader) fail(at origin, key, format string, args ...any) {
	if key == "" {
		key = rootKey
	}
	l.problems = append(l.problems, at.problem(key, format, args...))
}

// Load reads the file at path, lays the variables of environ (in the form of
// os.Environ) over it and validates the result. An empty path means that there
// is only the environment. Every error is an [*Error] with all problems.
func Load(path string, environ []string) (*Config, error) {
	l := &loader{env: environ, bad: map[string]bool{}, others: map[string]origin{}}
	root := &value{kind: mapValue}

	// 1. The file, if there is one. Without a readable document every further
	// complaint would be about something that is perhaps not even missing.
	var data []byte
	if path != "" {
		var problem *Problem
		data, problem = readFile(path)
		if problem != nil {
			return nil, newError([]Problem{*problem})
		}
		document := parseYAML(path, data)
		if document.unusable {
			return nil, newError(document.problems)
		}
		root, l.others, l.problems = document.root, document.others, document.problems
		for _, p := range l.problems {
			// Which value counts is not known, so that none is judged.
			l.bad[p.Key] = true
		}
	}
	// 2. ${NAME}, before the environment is laid over: its values are taken as
	// they are.
	l.interpolate(root, "")
	// 3. SF2LOKI_SECTION__KEY.
	l.overlay(root)
	// 4. Types and unknown keys, onto the defaults.
	c := defaults()
	c.file, c.document, c.sf2loki = path, data, l.others
	l.decode(schema, root, reflect.ValueOf(c).Elem(), c.set)
	// 5. Rules across keys.
	l.validate(c)

	if err := newError(l.problems); err != nil {
		return nil, err
	}
	return c, nil
}

// readFile reads the configuration file.
func readFile(path string) ([]byte, *Problem) {
	f, err := os.Open(path)
	if err != nil {
		return nil, readProblem(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, readProblem(path, err)
	}
	if len(data) > maxFile {
		p := origin{file: path}.problem(rootKey, "the file is larger than %d bytes; is it the configuration?", maxFile)
		return nil, &p
	}
	return data, nil
}

// readProblem says what to do about a file that cannot be read.
func readProblem(path string, err error) *Problem {
	at := origin{file: path}
	var p Problem
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p = at.problem(rootKey, "the file does not exist; check --config and what is mounted")
	case errors.Is(err, fs.ErrPermission):
		p = at.problem(rootKey, "permission denied; the container runs as uid 10001, which has to be able to read the file: chgrp it to a group of that uid and chmod 640, or chown it to 10001")
	default:
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			p = at.problem(rootKey, "is a directory; name the file in it")
			break
		}
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err // the place is named already
		}
		p = at.problem(rootKey, "cannot be read: %s", fmt.Sprint(err))
	}
	return &p
}
