package missed

import (
	"errors"
	"os"
	"testing"

	"github.com/samekey/samekey/internal/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	servers.Missed.Tell()
	os.Exit(code)
}

func TestOne(t *testing.T) { servers.Missed.Skip(t, errors.New("there is no server here")) }
func TestTwo(t *testing.T) { servers.Missed.Skip(t, errors.New("there is no server here")) }
