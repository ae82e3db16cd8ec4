package main

import "fmt"

// An answered is a URL with its answer.
type answered struct {
	url    string
	result *result
}

// mostUnproven bounds how many answers are put aside.
const mostUnproven = 1000

// handleResult takes in the result of a job.
func (c *crawl) handleResult(m *groupHandle, r *result) error {
	u, found := m.assigned[r.ID]
	if !found {
		return fmt.Errorf("process %d of the fleet reports a job that it was not given", m.number)
	}
	delete(m.assigned, r.ID)
	c.inFlight--
	c.stats.add(m.offset+r.Worker, r.Sends)
	switch {
	case r.Unsent:
		c.queue = append(c.queue, u)
	case r.Fatal:
		c.queue = append(c.queue, u)
		if c.stopping {
			return nil
		}
		return fmt.Errorf("%s: %s", u, r.Error)
	case r.Error != "":
		c.stats.failed++
		c.warn(u, r.Error)
	case r.Rejected && !c.served && len(c.unproven) >= mostUnproven:
		c.stats.failed++
		c.warn(u, "the provider answered "+r.Answer)
	case r.Rejected && !c.served:
		c.unproven = append(c.unproven, answered{u, r})
	default:
		if !r.Rejected {
			c.served = true
		}
		proven := c.unproven
		c.unproven = nil
		for _, one := range append(proven, answered{u, r}) {
			if err := c.keep(one.url, one.result); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep keeps the answer of a URL for good.
func (c *crawl) keep(u string, r *result) error {
	if r.Record != nil {
		if err := c.pages.add(append(r.Record, '\n')); err != nil {
			c.queue = append(c.queue, u) // the next run fetches it again
			return err
		}
	}
	c.stats.fetched++
	c.stats.statuses[r.Status]++
	if r.Warning != "" {
		c.warn(u, r.Warning)
	}
	c.add(r.Next, u)
	return nil
}

// isRetried reports whether an error that an earlier run was answered is fetched again.
func (c *crawl) isRetried(u string) bool {
	return c.plan.retryFailed && c.pages.pages[u].status >= 400
}
