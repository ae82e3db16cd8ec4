package main

import (
	"bytes"
	"fmt"
	"os"
)

// A failure is a URL that has no answer, and why.
type failure struct{ url, why string } // in a line

// writeFailed writes -failed, in place of what an earlier run has written. The file is a list for -urls.
func (c *crawl) writeFailed() error {
	if c.plan.failed == "" {
		return nil
	}
	var b bytes.Buffer
	for _, f := range c.failed {
		fmt.Fprintf(&b, "# %s\n%s\n", f.why, f.url)
	}
	if err := os.WriteFile(c.plan.failed, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("-failed: %w", err)
	}
	return nil
}
