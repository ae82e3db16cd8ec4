//go:build !unix

package ownredis

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
