package redisstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// sentArgs notes the arguments of the scripts that a client runs.
type sentArgs struct{ last []any }

func (s *sentArgs) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentArgs) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.last = slices.Clone(cmd.Args())
		}
		return next(ctx, cmd)
	}
}

func (s *sentArgs) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Go never sends these, but an older or a foreign client might: with a limit of
// -3, or a longest wait of nan, every call would be granted.
func TestScriptsRefuseHostileArguments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	sent := new(sentArgs)
	d.Client.AddHook(sent)
	under := func(n int) *store.Accounts {
		list := slices.Clone(rationtest.Accounts(t, n, ration.Limit{Max: 77, Window: 88 * time.Second}).All())
		for i := range list {
			list[i].Edition = store.Edition{Revision: 4711, Version: 4712}
		}
		accounts, err := store.NewAccounts(list...)
		require.NoError(t, err)
		return accounts
	}
	one, two := under(1), under(2)
	now := fmt.Sprint(d.Now.UnixMicro())

	request := d.Request(one, 55)
	request.MaxWait, request.Expect, request.Last, request.Recovered = 66*time.Second, d.Now.Add(1), d.Now.Add(2), d.Now.Add(3)
	inPool := request
	inPool.Accounts = two
	book := func(r store.BookRequest) func() error {
		return func() error { _, err := d.Store.Book(ctx, r); return err }
	}
	for _, c := range []struct {
		script string
		run    func() error
		valid  map[string]bool // the arguments to spoil, and whether they may be 0
		empty  string          // which of them may be empty
	}{
		{"book", book(request), map[string]bool{rules: false}, ""},
		{"book in a pool", book(inPool), map[string]bool{fmt.Sprint(two.Digest(), "*", store.IndexUnits(55)) + rules: false}, ""},
		{"usage", func() error {
			_, err := d.Store.Usage(ctx, store.UsageRequest{Budget: d.Name, Accounts: one, Now: d.Now})
			return err
		}, map[string]bool{now: false, "1": false, "77 88000000 0 L 0 - -": false}, now},
		{"pause", func() error {
			_, err := d.Store.Pause(ctx, store.PauseRequest{Budget: d.Name, Account: "a", For: 99 * time.Second, Now: d.Now})
			return err
		}, map[string]bool{now: false, "99000000": false}, now},
		{"status", func() error {
			_, err := d.Store.Status(ctx, store.StatusRequest{Budget: d.Name, Worker: "w", Now: d.Now})
			return err
		}, map[string]bool{now: false}, now},
		{"card", func() error {
			_, err := d.Store.Card(ctx, store.CardRequest{Budget: d.Name, Account: "a", Known: store.Edition{Revision: 4711, Version: 4712}, Limits: one.At(0).Limits, Now: d.Now})
			return err
		}, map[string]bool{now: false, "4711": true, "4712": true, "77 88000000 0 L 0 - -": false}, now + "77 88000000 0 L 0 - -"},
		{"describe", func() error { _, err := d.Store.Describe(ctx, d.Name); return err }, map[string]bool{"0": true}, ""},
		{"record", func() error {
			return d.Store.Record(ctx, store.RecordRequest{
				ID: store.NewBookingID(), Budget: d.Name, Account: one.At(0), Now: d.Now,
				Total: store.Spending{Slot: d.Now.Add(time.Second), Cost: 44},
				Spent: []store.Spending{{Slot: d.Now.Add(5 * time.Second), Cost: 55}},
			})
		}, map[string]bool{now: false, "44": true, "55": false, "77 88000000 0 L 0 - -": false, fmt.Sprint(d.Now.Add(5 * time.Second).UnixMicro()): false}, now},
	} {
		require.NoError(t, c.run(), c.script)
		valid := sent.last
		for arg, zero := range c.valid {
			at := slices.IndexFunc(valid[4:], func(a any) bool { return fmt.Sprint(a) == arg }) + 4
			require.Greater(t, at, 3, "%s has no argument %s: %v", c.script, arg, valid)
			for _, hostile := range hostileFor(arg) {
				if hostile == "0" && zero || hostile == "" && strings.Contains(c.empty, arg) {
					continue
				}
				d.Name = redistest.Name(t)
				args := slices.Clone(valid)
				args[3], args[at] = d.Key(""), hostile
				reply, err := d.Client.Do(ctx, args...).Result()
				require.Error(t, err, "%s with %q in place of %s answers %v", c.script, hostile, arg, reply)
				require.Empty(t, d.Keys(t), "%s with %q in place of %s", c.script, hostile, arg)
			}
		}
	}
}

// The numbers of a booking come as bytes, which have no sign, fraction or nan.
func TestTheScriptBookRefusesHostileBytes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := rationtest.NewRedisBudget(t)
	sent := new(sentArgs)
	d.Client.AddHook(sent)
	one := rationtest.Accounts(t, 1, ration.Limit{Max: 77, Window: 88 * time.Second})
	book := func() { d.Book(t, one, 5) }
	book()
	book() // now the account is known, and the session
	valid := slices.Clone(sent.last)
	record := d.Client.HGet(ctx, d.Key(""), fmt.Sprint(valid[5])).Val()
	require.NotEmpty(t, record)
	const call, session, bookings = 4, 5, 72 // the last behind the numbers of the first
	number := func(n uint64, length int) string {
		return string(binary.BigEndian.AppendUint64(nil, n)[8-length:])
	}
	one17 := "U" + number(1, 2) + number(5, 6) + number(1<<52, 8)
	require.Equal(t, one17, valid[call].(string)[bookings:])
	for _, c := range []struct {
		what     string
		arg      int
		at       int
		in       string
		whole    bool // in place of all that follows too
		accepted bool
	}{
		{"no change", call, 0, "", false, true},
		{"now too late", call, 16, number(1<<52+1, 8), false, false},
		{"now far too late", call, 16, number(math.MaxUint64, 8), false, false},
		{"a reckoned now too late", call, 24, number(1<<52+1, 8), false, false},
		{"a last now too late", call, 32, number(1<<52+1, 8), false, false},
		{"a loss too late", call, 40, number(1<<52+1, 8), false, false},
		{"a step too large", call, 48, number(1<<52+1, 8), false, false},
		{"a version of a card too large", call, 56, number(1<<52+1, 8), false, false},
		{"a lead too large", call, 64, number(1<<52+1, 8), false, false},
		{"a call too short", call, 0, number(0, 8), true, false},
		{"no call", call, 0, "", true, false},
		{"no session", session, 0, "", true, false},
		{"a session too long", session, 0, strings.Repeat("s", 19), true, false},
		{"no bookings", call, bookings, "", true, false},
		{"no booking", call, bookings + 1, number(0, 2), false, false},
		{"a cost of 0", call, bookings + 3, number(0, 6), false, false},
		{"a cost too large", call, bookings + 3, number(1_000_000_000_001, 6), false, false},
		{"a longest wait too long", call, bookings + 9, number(1<<52+2, 8), false, false},
		{"a kind of bookings that is not known", call, bookings, "X", false, false},
		{"longest waits that are missing", call, bookings, "D", false, false},
		{"half a booking behind", call, bookings, one17 + one17[:9], true, false},
		{"too many bookings", call, bookings + 1, number(1025, 2), false, false},
		{"bookings after too many", call, bookings, strings.Repeat(one17, 1025), true, false},
	} {
		for _, budget := range []string{d.Name, redistest.Name(t)} {
			args := slices.Clone(valid)
			args[3] = "ration:v2:{" + budget + "}"
			text := fmt.Sprint(args[call])
			args[call] = number(1<<40, 8) + text[8:] // the next of the session
			text = fmt.Sprint(args[c.arg])
			args[c.arg] = text[:c.at] + c.in
			if !c.whole {
				args[c.arg] = text[:c.at] + c.in + text[c.at+len(c.in):]
			}
			before := d.Entries(t)
			reply, err := d.Client.Do(ctx, args...).Result()
			if c.accepted {
				require.NoError(t, err)
				require.NoError(t, d.Client.HSet(ctx, args[3].(string), fmt.Sprint(args[session]), record).Err())
				continue
			}
			require.Error(t, err, "%s answers %q", c.what, reply)
			require.ErrorContains(t, err, "ration", c.what)
			require.Equal(t, before, d.Entries(t), c.what)
		}
	}
}

// rules is what book goes by, with the name of an index in front of it if there is one.
const rules = "  1 0 0 0  4711 4712 77 88000000 0 L 0 - -"

// hostileFor returns what to put in the place of an argument.
func hostileFor(arg string) []string {
	numbers := []string{
		"-3", "-1", "0", "2.5", "nan", "inf", "-inf", "0x10", " 5 ", "5 ", "1e3", "1e300", "", "5\n", "5\x00", "99999999999999999999", "1,5", "١",
	}
	if !strings.Contains(arg, " ") {
		return numbers
	}
	const valid = "5 1000000 0 L 0 - -"
	if strings.HasSuffix(arg, rules) {
		return hostileRules(arg, numbers)
	}
	all := []string{
		"", " ", "5", "x", "5 1000000", valid + " 7", "7 " + valid, "5  1000000 0 L 0 - -", valid + " -3 1000000 0 L 0 - -",
		"1000000000001 1000000 0 L 0 - -", "5 999 0 L 0 - -", "5 99999999999999 0 L 0 - -", "5 1000000 0 X 0 - -", "5 1000000 0 l 0 - -",
		"5 1000000 0 F 0 - Europe/Nowhere",
	}
	for _, n := range numbers {
		if strings.TrimSpace(n) == n && n != "" {
			all = append(all, n+" 1000000 0 L 0 - -", "5 "+n+" 0 L 0 - -")
			if n != "0" {
				all = append(all, "5 1000000 "+n+" L 0 - -", "5 1000000 0 L "+n+" - -")
			}
		}
	}
	return all
}

// hostileRules spoils each part of what book goes by.
func hostileRules(arg string, numbers []string) (all []string) {
	const digest, excluded, sets, zones, shared, keep, scopes, revision, version, set = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	parts := strings.SplitN(arg, " ", set+1)
	spoil := func(part int, with ...string) {
		for _, hostile := range with {
			spoiled := slices.Clone(parts)
			spoiled[part] = hostile
			all = append(all, strings.Join(spoiled, " "))
		}
	}
	spoil(digest, "!", "g", parts[digest]+"\n")
	if name, units, found := strings.Cut(parts[digest], "*"); found {
		spoil(digest, name, name+"*", "*"+units, name+"*0", name+"*-1", name+"*x", parts[digest]+"*1", name+"*56", name+"*1000000000001") // it costs 55
	}
	spoil(excluded, "!", "a;b", "\n")
	numbers = slices.DeleteFunc(numbers, func(n string) bool { return n == "0" })
	for _, part := range []int{sets, zones, shared, keep, revision, version} {
		spoil(part, numbers...)
	}
	spoil(sets, "0")
	spoil(keep, "1000")
	spoil(scopes, "!", "a;b", "\n")
	spoil(set, hostileFor(parts[set])...)
	return append(all, "", " ", parts[set], strings.Join(parts[:set], " "), " "+arg)
}
