//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile keeps other crawlers out for as long as the file is open here: two
// that append to one file would fetch everything twice. The lock ends with the
// process, however that ends.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // a file system without locks is no reason not to crawl
	}
	return err
}
