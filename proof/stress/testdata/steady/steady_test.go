package steady

import "testing"

func TestSteady(*testing.T) {}
