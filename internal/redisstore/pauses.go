package redisstore

import (
	"cmp"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

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
