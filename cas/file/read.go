package file

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// read returns content and version of one state of the file. Both come from one
// descriptor: a rename meanwhile changes which file has the name, not this one.
// A file that is too large has a version beside its error.
//
// The age is by this machine's wall clock, since a file system does not say what
// its clock shows now. The two are one on a local disk; elsewhere, and after a
// step, the age is off by what they differ. A time in the future is age 0.
func read(path string) (cas.Value, error) {
	c, err := posix.Read(path)
	if err != nil && !errors.Is(err, posix.ErrTooLarge) {
		return cas.Value{}, err
	}
	return cas.Value{Data: c.Data, Version: version(c.Info, c.Sum), Age: cas.AgeOf(time.Now(), c.Info.ModTime())}, err
}

// version names one state of a file. The hash alone would do for callers that
// write fresh bytes each time; inode and time also tell a copy that somebody
// restored from the write it was copied from.
func version(info fs.FileInfo, sum string) cas.Version {
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino)
	}
	return cas.Version(fmt.Sprintf("%x-%x-%s", inode, info.ModTime().UnixNano(), sum))
}
