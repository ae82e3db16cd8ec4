package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheProgressLineSaysWhyWorkersWait(t *testing.T) {
	until := time.Now().Add(time.Hour)
	all := make(waits)
	require.Empty(t, all.String())
	all.add("pause", 3, until)
	all.add("quota", 40, time.Now().Add(time.Second))
	all.add("pause", 5, until.Add(-time.Minute))
	require.Equal(t, ": 40 for quota, 8 for pause until "+until.Format(time.TimeOnly), all.String())
	all.add("pause", -8, time.Time{})
	all.add("quota", -40, time.Time{})
	require.Empty(t, all)
}
