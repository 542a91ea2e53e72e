package file

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas"
)

var errIrregular = errors.New("not a regular file")

// open opens the file for reading if it is one. It neither follows a symbolic
// link (the object is the file that rename replaces) nor waits for the other end
// of a pipe.
func open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, nil, errIrregular
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// read returns content and version of one state of the file. Both come from one
// descriptor: a rename meanwhile changes which file has the name, not this one.
func read(path string) (cas.Value, error) {
	f, info, err := open(path)
	if err != nil {
		return cas.Value{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, cas.MaxSize+1))
	if err != nil {
		return cas.Value{}, err
	}
	if len(data) > cas.MaxSize {
		v, err := current(path) // the hash of all of it
		if err != nil {
			return cas.Value{}, err
		}
		return cas.Value{Version: v}, errTooLarge
	}
	sum := sha256.Sum256(data)
	return cas.Value{Data: data, Version: version(info, sum[:])}, nil
}

var errTooLarge = fmt.Errorf("larger than %d bytes", cas.MaxSize)

// current returns the version of the file, whatever its size.
func current(path string) (cas.Version, error) {
	f, info, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return version(info, h.Sum(nil)), nil
}

// version names one state of a file. The hash alone would do for callers that
// write fresh bytes each time; inode and time also tell a copy that somebody
// restored from the write it was copied from.
func version(info fs.FileInfo, sum []byte) cas.Version {
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino)
	}
	return cas.Version(fmt.Sprintf("%x-%x-%s", inode, info.ModTime().UnixNano(), hex.EncodeToString(sum[:16])))
}
