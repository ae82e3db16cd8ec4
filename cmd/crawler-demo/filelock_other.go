//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// lockFile does nothing where there is no flock: whoever starts two crawlers on
// one file has to look out.
func lockFile(*os.File) error { return nil }
