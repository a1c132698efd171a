package prove

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The first booking waits until the API answers, and says what it answered last.
func TestWarm(t *testing.T) {
	t.Parallel()
	for late, answers := range map[time.Duration]bool{0: true, 20 * time.Second: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			p := m.place()
			p.meter.begin(warming)
			m.concurrency["booker"] = 0
			time.AfterFunc(late, func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.concurrency["booker"] = 10
			})
			synctest.Wait()
			err := p.warm(t.Context())
			if (err == nil) != answers || err != nil && !strings.Contains(err.Error(), "the last one is 503") || answers != (len(m.items["rides"]) == 1) {
				t.Errorf("an API that answers after %s: %v", late, err)
			}
		})
	}
}
