package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// An outFile is the -out file: what was fetched, by this run and those before it.
// One process writes it, one whole line with each write, so that a kill -9 tears
// at most the last. A nil file keeps nothing.
type outFile struct {
	file disk
	size int64 // of the whole lines, behind which the next is written

	// What earlier runs fetched, by URL.
	pages     map[string]page
	calls     []earlierCall // that can still count, in the order of the file
	tornBytes int64         // the length of a torn line, which is cut off
}

// A disk is what is written to, an *os.File. It can be full.
type disk interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// A page is a URL that was fetched.
type page struct {
	next    string
	warning error // the next page cannot be followed
}

// openOutFile opens -out, locks it, and reads what is in it. Nothing in a file
// that is not ours is touched.
func openOutFile(o options, p plan) (*outFile, error) {
	j := &outFile{pages: make(map[string]page)}
	if o.out == "" {
		return j, nil
	}
	// A pipe or a terminal cannot be read back; to open some would hang.
	if info, err := os.Stat(o.out); err == nil && !info.Mode().IsRegular() {
		return nil, badf("-out: %s is not a file that can be resumed from: name a file", o.out)
	}
	file, err := os.OpenFile(o.out, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		if path, found := errors.AsType[*fs.PathError](err); found {
			err = path.Err
		}
		return nil, badf("-out: %s: %w: name a file that can be written", o.out, err)
	}
	j.file = file
	if err := lockFile(file); err != nil {
		_ = file.Close()
		return nil, badf("-out: %s is being written by another crawler: wait for it, or name another file", o.out)
	}
	if err := j.read(o.out, file, p); err != nil {
		_ = file.Close()
		return nil, err
	}
	if o.isDemo() && len(j.pages) > 0 {
		_ = file.Close()
		return nil, badf("-out: %s has pages in it, and the demo has nothing to resume: name a new file", o.out)
	}
	return j, nil
}

// read reads all lines. A last line that was torn is cut off.
func (j *outFile) read(name string, from io.Reader, p plan) error {
	in := bufio.NewReaderSize(from, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return badf("-out: %s cannot be read: %w", name, err)
		}
		if len(line) == 0 {
			return nil
		}
		r, ours := parseRecord(line)
		whole := err == nil
		switch {
		case ours && whole:
			j.size += int64(len(line))
			j.remember(r, p)
		case !whole && (ours || isTorn(line)):
			j.tornBytes = int64(len(line))
			if err := j.file.Truncate(j.size); err != nil {
				return badf("-out: %s: %w: name a file that can be written", name, err)
			}
			return nil
		default:
			return badf("-out: %s line %d was not written by crawler-demo: name another file", name, n)
		}
	}
}

// remember notes the page and the call of a line.
func (j *outFile) remember(r record, p plan) {
	found := page{}
	switch {
	case r.Next != nil:
		found.next = *r.Next
	case p.follow.inHeader() && r.Status < 300:
		found.warning = errors.New("it was kept without -follow, and its header Link was not: remove its line to fetch it again, or name another file")
	case p.follow.follows() && r.Status < 300:
		if base, err := parseURL(cmp.Or(r.FinalURL, r.URL)); err == nil {
			found.next, found.warning = follow(p.follow, p.redactor, base, nil, r.body())
		}
	}
	j.pages[r.URL] = found
	// The provider has counted it by the time it answered, and no earlier instant
	// is sure. parseRecord has looked at it.
	if at, _ := time.Parse(time.RFC3339Nano, r.Received); time.Since(at) < p.longestCount() {
		j.calls = append(j.calls, earlierCall{r.Token, at})
	}
}

// add writes one line. If that fails, as on a full disk, the file ends as it did before, and
// the next line stands where this one was to.
func (j *outFile) add(line []byte) error {
	if j.file == nil {
		return nil
	}
	if _, err := j.file.WriteAt(line, j.size); err != nil {
		_ = j.file.Truncate(j.size)
		return fmt.Errorf("-out: %w", err)
	}
	j.size += int64(len(line))
	return nil
}

// earlierCalls returns the calls that still count, oldest first, without those that a clock put
// into the future.
func (j *outFile) earlierCalls() []earlierCall {
	calls := slices.DeleteFunc(slices.Clone(j.calls), func(c earlierCall) bool { return !c.At.Before(time.Now()) })
	slices.SortFunc(calls, func(a, b earlierCall) int { return a.At.Compare(b.At) })
	return calls
}

func (j *outFile) close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	return errors.Join(file.Sync(), file.Close())
}
