package simulated

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// medium is a photo, an album or a film.
type medium struct {
	ID        string `json:"id"`
	Caption   string `json:"caption"`
	Type      string `json:"media_type"`
	Permalink string `json:"permalink"`
	Timestamp string `json:"timestamp"`
	LikeCount int    `json:"like_count"`
}

// The IDs look like Instagram's and can be read back: user 3 is 17841400000000003, and the first of that user's media
// is 17900003000000000.
const (
	firstUserID    = 17_841_400_000_000_000
	firstMediumID  = 17_900_000_000_000_000
	mediaIDsOfUser = 1_000_000_000
)

var (
	newest   = time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	subjects = []string{"A cat", "Two cats", "Too many cats", "A cat in a box", "Breakfast", "The sea at dusk"}
	places   = []string{"Ghent", "Lisbon", "Kyoto", "Oslo", "Valparaiso"}
	types    = []string{"IMAGE", "IMAGE", "CAROUSEL_ALBUM", "VIDEO"}
)

func userID(user int) int64 { return firstUserID + int64(user) }

// userOf returns the user with that ID, from 1, if there is one.
func userOf(id string) (user int, ok bool) {
	number, err := strconv.ParseInt(id, 10, 64)
	number -= firstUserID
	return int(number), err == nil && number > 0 && number < mediaIDsOfUser
}

// mediumAt returns the n-th newest medium of the user. It depends on nothing else, so an ID always means the same
// medium.
func mediumAt(user, n int) medium {
	id := firstMediumID + int64(user)*mediaIDsOfUser + int64(n)
	random := rand.New(rand.NewPCG(uint64(user), uint64(n)))
	code := binary.BigEndian.AppendUint64(nil, uint64(id))
	posted := newest.Add(-time.Duration(n)*7*time.Hour - time.Duration(user)*time.Minute)
	return medium{
		ID:        strconv.FormatInt(id, 10),
		Caption:   fmt.Sprintf("%s, %s", pick(random, subjects), pick(random, places)),
		Type:      pick(random, types),
		Permalink: fmt.Sprintf("https://www.instagram.com/p/%s/", base64.RawURLEncoding.EncodeToString(code)),
		Timestamp: posted.Format("2006-01-02T15:04:05-0700"),
		LikeCount: random.IntN(5000),
	}
}

func pick(random *rand.Rand, from []string) string { return from[random.IntN(len(from))] }

// mediumOf returns the n of the user's medium with that ID, if it is one.
func mediumOf(user int, id string) (n int, ok bool) {
	number, err := strconv.ParseInt(id, 10, 64)
	number -= firstMediumID + int64(user)*mediaIDsOfUser
	return int(number), err == nil && number >= 0 && number < mediaIDsOfUser
}
