package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/limit"
)

// Calls in flight are limited by permits, of which each worker has a share: a call takes one of its worker's, and no step of the store.
// A worker says with its [StatusRequest] how many calls it has in flight and could have, and the store divides the limit among those
// that have said so lately.

// PermitsFor is how long after a request a worker may use its share; a store gives it to others then, unless the worker has asked again.
const PermitsFor = 30 * time.Second

// RaisePermitsAfter is how long after the provider has refused a call for its concurrency the lowered limit is raised by one, and again
// after as long.
const RaisePermitsAfter = time.Minute

// MaxPermitRequests is how many a [StatusRequest] may have.
const MaxPermitRequests = 1000

// A PermitRequest is what a worker says of its calls under one limit of calls in flight.
type PermitRequest struct {
	// Limit names the limit: the ID of what it is of, as [MeterID] makes it. Label is what people call that, if not so.
	Limit, Label string
	// Max is the limit, from 1 to 10^6.
	Max int
	// Used is how many calls of the worker are in flight, and Wanted how many would be if there were permits for all; it may ask for a
	// few more. With both zero the worker gives up its share.
	Used, Wanted int
	// Share is how many calls of the worker may be in flight until it has the answer: the share that it knows, or less. Until it has said
	// that it knows of a smaller one, the rest is nobody else's.
	Share int
	// Refused is how many of Used the provider has refused for their concurrency since the request before. The store lowers the limit to
	// as many as are left in flight, or other workers may have: by one at least, and by three tenths at most, once a second.
	Refused int
}

// Permits are what a store has given a worker of one limit.
type Permits struct {
	// Limit and Label are those of the request.
	Limit, Label string
	// Share is how many calls of the worker may be in flight, for PermitsFor. Fewer than are in flight: it begins no other until enough
	// have ended. In a [Description] it is the sum of all workers.
	Share int
	// Max is the limit in force: lower than that of the request for a while after refusals.
	Max int
	// Used is how many calls are in flight, as all workers have said last.
	Used int
	// Short is set if workers want more than there are: the worker asks for no more than it can use, and tells soon of those that it
	// does not need.
	Short bool
}

func (r *PermitRequest) validate() error {
	switch {
	case !ValidAccountID(r.Limit):
		return accountIDError(r.Limit)
	case !validLabel(r.Label):
		return fmt.Errorf("ration: PermitRequest.Label must be at most %d bytes of printable text", MaxLabel)
	case (limit.Limit{InFlight: r.Max}).Validate() != nil || r.Max == 0:
		return fmt.Errorf("ration: PermitRequest.Max is %d: it must be from 1 to 10^6", r.Max)
	case min(r.Used, r.Wanted, r.Share, r.Refused) < 0 || max(r.Used, r.Wanted, r.Share, r.Refused) > limit.MaxUnits:
		return fmt.Errorf("ration: PermitRequest: Used, Wanted, Share and Refused are %d, %d, %d, %d: each must be from 0 to %d", r.Used, r.Wanted, r.Share, r.Refused, limit.MaxUnits)
	}
	return nil
}

// FairShare returns how many of so many permits one of those is given who want some, whose wants are listed in an order that all
// requests have. Who wants less than an even share has that, and the others divide evenly what it leaves. What is over then goes from
// one of them to the next with each turn.
func FairShare(permits int, wants []int, of int, turn int64) int {
	left, many := permits, len(wants)
	for _, n := range slices.Sorted(slices.Values(wants)) {
		if n > left/many {
			break
		}
		left -= n
		many--
	}
	if many == 0 || wants[of] <= left/many {
		return wants[of]
	}
	place := 0 // among those who want more
	for _, n := range wants[:of] {
		if n > left/many {
			place++
		}
	}
	if (int64(place)+turn)%int64(many) < int64(left%many) {
		return left/many + 1
	}
	return left / many
}
