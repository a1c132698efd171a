package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// startTimeout limits how long [Start] searches: a first call may download 74 MB.
const startTimeout = 10 * time.Minute

// shared is the one database of this test process.
var shared = sharedDB{skips: &servers.Missed}

// Start returns the database that all tests of this process share. The first call finds
// or starts the database, as [Find] does. All calls, from any goroutine, get the same
// database or the same error.
//
// If no DynamoDB is available, Start skips the test with a message that names what is
// missing. If REQUIRE_DYNAMODB is set (to anything but "", "0" and "false"), Start
// fails the test instead. Set REQUIRE_DYNAMODB in CI: otherwise a run can be green
// because all tests were skipped. Every other error fails the test.
//
// The database is in memory. Give each test its own table names, because the tests
// share the database. If DYNAMOTEST_SEPARATE is 1, each test with its subtests has a
// separate database in the shared process. [Main] closes the database; tests must not.
func Start(tb testing.TB) *DB {
	tb.Helper()
	return shared.start(tb, Find)
}

// Main runs the tests of a package, and then closes the database of [Start]. If tests
// were skipped because there is no database, Main prints one line with their number and
// the reason. Main returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
//
// If TestMain doesn't call Main, the database ends with the test process only on Linux,
// and leaves a temporary file of 1 MB for a day. On other systems the database
// continues to run.
func Main(m interface{ Run() int }) int { return shared.main(m) }

// MainSeparate is [Main] with DYNAMOTEST_SEPARATE=1: each test has a separate database.
func MainSeparate(m interface{ Run() int }) int {
	_ = os.Setenv(envSeparate, "1") // Setenv fails only if the name is invalid
	return Main(m)
}

type sharedDB struct {
	mu    sync.Mutex
	done  bool // whether db and err hold the result of the search
	skips *servers.Skips
	db    *DB
	err   error
}

func (s *sharedDB) start(tb testing.TB, find func(context.Context) (*DB, error)) *DB {
	tb.Helper()
	db, err := s.get(find)
	if err != nil {
		if errors.Is(err, ErrUnavailable) && !servers.Required(envRequire) {
			s.skips.Skip(tb, err)
		}
		tb.Fatal(err)
	}
	if separates() {
		name, _, _ := strings.Cut(tb.Name(), "/")
		return db.separate(name)
	}
	return db
}

func separates() bool { return servers.Required(envSeparate) }

func (s *sharedDB) get(find func(context.Context) (*DB, error)) (*DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		// The context isn't a test's, because the database outlives the first test.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.db, s.err = find(ctx)
		s.done = true
	}
	return s.db, s.err
}

func (s *sharedDB) main(m interface{ Run() int }) (code int) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.db.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		s.skips.Tell()
	}()
	return m.Run()
}
