package external

import (
	"cmp"
	"slices"

	"github.com/ration-go/ration/store"
)

// permits are the workers that have any of one limit, in the order of their names.
type permits struct {
	workers []permitWorker
	lowered int   // the limit after refusals
	since   int64 // when it was lowered; 0: it was not
}

type permitWorker struct {
	name                string
	used, wanted, share int
	knows               int
	ends                int64
}

func (w permitWorker) counts() int { return max(w.used, w.share, w.knows) }

// permit answers a worker's request.
func (p *permits) permit(name string, r store.PermitRequest, now int64) store.Permits {
	p.workers = slices.DeleteFunc(p.workers, func(w permitWorker) bool { return w.ends <= now })
	at, found := slices.BinarySearchFunc(p.workers, name, func(w permitWorker, name string) int { return cmp.Compare(w.name, name) })
	if !found {
		p.workers = slices.Insert(p.workers, at, permitWorker{name: name})
	}
	own := &p.workers[at]
	own.used, own.wanted, own.share, own.knows, own.ends = r.Used, max(r.Used, r.Wanted), 0, r.Share, now+store.PermitsFor.Microseconds()

	reply := store.Permits{Limit: r.Limit, Label: r.Label, Max: r.Max}
	others := 0
	var wants []int
	for i, w := range p.workers {
		reply.Used += w.used
		wants = append(wants, w.wanted)
		if i != at {
			others += w.counts()
		}
	}
	if p.since > 0 {
		reply.Max = min(r.Max, p.lowered+int((now-p.since)/store.RaisePermitsAfter.Microseconds()))
	}
	if r.Refused > 0 && now-p.since >= 1_000_000 {
		reply.Max = max(1, reply.Max-max(1, reply.Max*3/10), min(reply.Max-1, r.Used+others-r.Refused))
		p.lowered, p.since = reply.Max, now
	}
	own.share = max(0, min(store.FairShare(reply.Max, wants, at, now/2_000_000), reply.Max-others))
	reply.Share = own.share
	reply.Short = slices.ContainsFunc(p.workers, func(w permitWorker) bool { return w.share < w.wanted })
	if own.wanted == 0 && own.counts() == 0 {
		p.workers = slices.Delete(p.workers, at, at+1)
	}
	return reply
}
