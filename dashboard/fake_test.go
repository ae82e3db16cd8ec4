package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A fakeStore has one budget, api, with the account x, and what a test adds.
type fakeStore struct {
	reads atomic.Int64
	down  atomic.Bool

	mu   sync.Mutex // protects all below
	d    store.Description
	done []string
}

func newFakeStore() *fakeStore {
	now := time.Now()
	return &fakeStore{d: store.Description{Budget: "api", Now: now, Version: 1, Accounts: []store.DescribedAccount{account("x", "", now, 4, 3)}}}
}

// account returns one whose limit of 10 in a minute is used and booked ahead.
func account(id, label string, now time.Time, used, ahead int64) store.DescribedAccount {
	l := store.NewLimitUsage(limit.PerMinute(10), used, ahead, now.Add(time.Minute))
	return store.DescribedAccount{Usage: store.Usage{Account: id, Now: now, Limits: []store.LimitUsage{l}}, Label: label}
}

func (s *fakeStore) set(change func(d *store.Description)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.d)
}

func (s *fakeStore) changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *fakeStore) Budgets(context.Context) ([]store.KnownBudget, error) {
	s.reads.Add(1)
	if s.down.Load() {
		return nil, errors.New("dial tcp 127.0.0.1:6379: connection refused")
	}
	return []store.KnownBudget{{Name: "api"}}, nil
}

func (s *fakeStore) Describe(context.Context, string) (store.Description, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.d
	d.Accounts = slices.Clone(d.Accounts)
	return d, nil
}

func (s *fakeStore) Pause(_ context.Context, r store.PauseRequest) (store.PauseReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Key != "" {
		s.done = append(s.done, fmt.Sprintf("pause %s %s %s %v until %v", r.Budget, r.Account, r.Key, r.For, r.Replaces))
		return store.PauseReply{Version: 2, Before: 1}, nil
	}
	s.done = append(s.done, fmt.Sprintf("pause %s %s %v %s", r.Budget, r.Account, r.For, r.Cause))
	return store.PauseReply{}, nil
}

func (s *fakeStore) Quarantine(_ context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf("quarantine %s %s %s %v until %v", r.Budget, r.Token, r.Reason, r.For, r.Replaces))
	return store.PauseReply{}, nil
}

func (s *fakeStore) Card(_ context.Context, r store.CardRequest) (store.CardReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf("card %s %s %v", r.Budget, r.Account, r.Limits))
	return store.CardReply{}, nil
}

func (s *fakeStore) Resume(_ context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "resume"
	if r.Forget {
		what = "forget"
	}
	s.done = append(s.done, fmt.Sprintf("%s %s %s%s", what, r.Budget, r.Account, r.Token))
	return store.PauseReply{}, nil
}
