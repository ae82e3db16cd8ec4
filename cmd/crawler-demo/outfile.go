package main

import (
	"bufio"
	"bytes"
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
	tornBytes int64         // the length of what was torn: cut off, or blanked
	blanks    []span        // torn lines, or the fronts of lines, with whole ones behind them
}

// A disk is what is written to, an *os.File. It can be full.
type disk interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// A span is a part of a file.
type span struct{ from, to int64 }

// A page is a URL that was fetched.
type page struct {
	status  int
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

// read reads all lines, and repairs what was torn: a machine that loses its power can
// leave zeros where a file was being written.
func (j *outFile) read(name string, from io.Reader, p plan) error {
	in := bufio.NewReaderSize(from, 1<<20)
	var at int64 // where the line begins
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return badf("-out: %s cannot be read: %w", name, err)
		}
		if len(line) == 0 {
			break
		}
		text := line
		if at > 0 { // the first line tells whose file it is
			text = bytes.TrimLeft(line, "\x00 ")
		}
		r, ours := parseRecord(text)
		front := int64(len(line) - len(text))
		next := at + int64(len(line))
		switch whole := line[len(line)-1] == '\n'; {
		case ours:
			if bytes.IndexByte(line[:front], 0) >= 0 {
				j.blanks = append(j.blanks, span{at, at + front})
			}
			if !whole { // only its line feed is missing
				next++
			}
			j.size = next
			j.remember(r, p)
		case !whole && (len(text) == 0 || isTorn(text)): // the end of the file, which is cut off
			j.tornBytes += int64(len(line))
		case at > 0 && whole && (bytes.IndexByte(line, 0) >= 0 || len(bytes.TrimSpace(text)) == 0 && front > 0):
			if bytes.IndexByte(line, 0) >= 0 {
				j.blanks = append(j.blanks, span{at, next - 1})
			}
			j.size = next
		default:
			return badf("-out: %s line %d was not written by crawler-demo: name another file", name, n)
		}
		at += int64(len(line))
		if err == io.EOF {
			break
		}
	}
	if err := j.repair(at); err != nil {
		return badf("-out: %s: %w: name a file that can be written", name, err)
	}
	return nil
}

// repair makes the file, which has that length, whole lines of JSON and blank ones.
func (j *outFile) repair(length int64) error {
	for _, torn := range j.blanks {
		blank := bytes.Repeat([]byte(" "), int(torn.to-torn.from))
		if _, err := j.file.WriteAt(blank, torn.from); err != nil {
			return err
		}
		j.tornBytes += torn.to - torn.from
	}
	switch {
	case length > j.size:
		return j.file.Truncate(j.size)
	case length < j.size:
		_, err := j.file.WriteAt([]byte("\n"), length)
		return err
	}
	return nil
}

// remember notes the page and the call of a line.
func (j *outFile) remember(r record, p plan) {
	found := page{status: r.Status}
	switch {
	case r.Next != nil:
		found.next = *r.Next
	case p.follow.follows() && r.Status < 300:
		if base, err := parseURL(cmp.Or(r.FinalURL, r.URL)); err == nil {
			found.next, found.warning = follow(p.follow, p.redactor, base, r.Link, r.body())
		}
	}
	j.pages[r.URL] = found // of a URL that was fetched again the last line counts
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
