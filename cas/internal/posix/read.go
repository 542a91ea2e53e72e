package posix

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Content is one state of a file.
type Content struct {
	// Data is what is in the file; nil if that is more than cas.MaxSize.
	Data []byte
	// Sum is a hash of all of it, as hexadecimal digits.
	Sum string
	// Info belongs to the descriptor that was read.
	Info fs.FileInfo
}

// Sum is the hash that Content.Sum has for data.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return digits(sum[:])
}

func digits(sum []byte) string { return hex.EncodeToString(sum[:16]) }

// Open opens the file for reading if it is one. It neither follows a symbolic
// link (the object is the file that has the name) nor waits for the other end of
// a pipe.
func Open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read returns one state of the file: everything comes from one descriptor, so
// another file that gets the name meanwhile is not mixed in. A file larger than
// cas.MaxSize is ErrTooLarge beside a Content without data.
func Read(path string) (Content, error) {
	f, info, err := Open(path)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, cas.MaxSize+1))
	if err != nil {
		return Content{}, err
	}
	if len(data) <= cas.MaxSize {
		return Content{Data: data, Sum: Sum(data), Info: info}, nil
	}
	h := sha256.New()
	h.Write(data)
	if _, err := io.Copy(h, f); err != nil {
		return Content{}, err
	}
	return Content{Sum: digits(h.Sum(nil)), Info: info}, &os.PathError{Op: "read", Path: path, Err: ErrTooLarge}
}
