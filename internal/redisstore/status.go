package redisstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// Pause implements [store.Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	return s.pause(ctx, "pause", r.Budget, []any{micros(r.Now), encodePause(r.Account, r.Key), r.For.Microseconds(), r.Apart.Microseconds()})
}

// Quarantine implements [store.Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	return s.pause(ctx, "quarantine", r.Budget, []any{micros(r.Now), encodeQuarantine(r.Token, r.Reason), r.For.Microseconds(), 0})
}

func (s *Store) pause(ctx context.Context, op, budget string, args []any) (store.PauseReply, error) {
	reply, err := s.run(ctx, op, pauseScript(), budget, args)
	if err != nil {
		return store.PauseReply{}, err
	}
	var n [3]int64
	reply.numbers(n[:])
	if err := reply.end(op); err != nil {
		return store.PauseReply{}, err
	}
	return store.PauseReply{Until: instant(n[0]), Version: n[1], Before: n[2]}, nil
}

// Status implements [store.Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if err := r.Validate(); err != nil {
		return store.Status{}, err
	}
	reply, err := s.run(ctx, "status", statusScript(), r.Budget, []any{micros(r.Now), r.Worker, r.Known})
	if err != nil {
		return store.Status{}, err
	}
	var n [7]int64
	reply.numbers(n[:])
	status := store.Status{
		Now: instant(n[0]), Version: n[1], Lost: instant(n[2]), Workers: toInt(n[3]), Revision: toInt(n[4]), Since: n[5], More: n[6] > 0,
	}
	for reply.rest != "" {
		name := reply.name()
		var until [1]int64
		reply.numbers(until[:])
		addPause(&status, name, instant(until[0]))
	}
	if err := reply.end("status"); err != nil {
		return store.Status{}, err
	}
	return status, nil
}

// The scripts keep every pause under one name, as if it were an account's. A name that is
// not an account's has a character that no account's ID has.

const (
	allAccounts      = "*"
	keyPrefix        = "at:"    // at:KEY or at:KEY:ACCOUNT
	quarantinePrefix = "aside:" // aside:REASON:TOKEN
)

// encodePause names the pause of an account, of all, or of a part of them.
func encodePause(account, key string) string {
	switch {
	case key == "":
		return cmp.Or(account, allAccounts)
	case account == "":
		return keyPrefix + key
	}
	return keyPrefix + key + ":" + account
}

// encodeQuarantine names the quarantine of a token.
func encodeQuarantine(token, reason string) string { return quarantinePrefix + reason + ":" + token }

// addPause adds to the status what a name stands for.
func addPause(status *store.Status, name string, until time.Time) {
	if rest, found := strings.CutPrefix(name, quarantinePrefix); found {
		reason, token, _ := strings.Cut(rest, ":")
		status.Quarantined = append(status.Quarantined, store.Quarantine{Token: token, Reason: reason, Until: until})
		return
	}
	pause := store.Pause{Account: name, Until: until}
	if rest, found := strings.CutPrefix(name, keyPrefix); found {
		pause.Key, pause.Account, _ = strings.Cut(rest, ":")
	} else if name == allAccounts {
		pause.Account = ""
	}
	status.Pauses = append(status.Pauses, pause)
}
