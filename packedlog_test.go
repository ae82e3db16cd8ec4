package ration_test

import (
	"testing"

	"github.com/ration-go/ration"
)

func TestPackedLogAgreesWithAModel(t *testing.T) {
	t.Parallel()
	agreeWithAModel(t, ration.PackedLog)
}

func TestPackedLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	keepTheContract(t, ration.PackedLog)
}
