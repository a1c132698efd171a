package ui

import (
	"context"
	"encoding/json"
	"errors"
)

// Source is the table that the page shows. A Source is safe for concurrent use.
type Source interface {
	// About returns the table's name and place. It makes no call.
	About() About
	// Size returns the table's approximate size, so that the page can state the cost of
	// reading all of it.
	Size(ctx context.Context) (Size, error)
	// Browse reads all records and calls see with each page of them, one call after
	// another. Browse returns the first error, or the error of ctx.
	Browse(ctx context.Context, see func([]Row, Progress)) error
	// Waiting returns the rows of records that wait for people. If there are more than
	// most, it returns the oldest. If no query can find them, it returns ErrNoQuery.
	Waiting(ctx context.Context, most int) ([]Row, error)
	// Row reads a record. If there is no record, ok is false.
	Row(ctx context.Context, pk string) (row Row, ok bool, err error)
	// Follow first calls the function started. Then, until ctx ends, it calls the function
	// changed with the keys of written records. It returns ErrNoStream at once if changes
	// can't be followed.
	Follow(ctx context.Context, started func(), changed func(pks []string)) error
	// Find returns the records that a search names, the newest first.
	Find(ctx context.Context, s Search) (*Found, error)
	// Story explains a record. The story has the request, the answer, results of phases and
	// arguments of jobs only if personal is true. If there is no record, the error matches
	// ErrGone.
	Story(ctx context.Context, pk string, personal bool) (*Story, error)
	// Ask returns the sentences that a person has to agree to before Act.
	Ask(ctx context.Context, a Action) (string, error)
	// Act carries out an action and returns a sentence about the outcome. If the record
	// has changed since it was shown, Act changes nothing, and the error matches
	// ErrMoved.
	Act(ctx context.Context, a Action) (string, error)
}

var (
	// ErrNoQuery matches errors of a table without the index of waiting operations.
	ErrNoQuery = errors.New("the table has no index \"waiting\"")
	// ErrNoStream matches errors of a table whose changes can't be followed.
	ErrNoStream = errors.New("the table's changes can't be followed")
	// ErrGone matches errors about a record that doesn't exist.
	ErrGone = errors.New("no such record")
	// ErrMoved matches errors about a record that was written since it was shown.
	ErrMoved = errors.New("the record has changed since it was shown")
	// ErrRefused matches errors about an action that doesn't fit the record, or that
	// contradicts itself: nothing was changed.
	ErrRefused = errors.New("refused")
)

// About is the table's name and place.
type About struct {
	Table    string `json:"table"`
	Region   string `json:"region,omitempty"`
	Endpoint string `json:"endpoint,omitempty"` // URL of a local database
	// Local says that reads are free. If so, the page reads the whole table without being
	// asked.
	Local bool `json:"local"`
	// By is the operator's name, for the records' history.
	By string `json:"by,omitempty"`
}

// Size is a table's size, as the database last counted it.
type Size struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// Units returns the read units of an eventually consistent scan: half a unit for each
// 4 KB.
func (s Size) Units() float64 { return float64(s.Bytes) / 4096 / 2 }

// Progress is the progress of a scan.
type Progress struct {
	Scanned int     `json:"scanned"`
	Units   float64 `json:"units"`
}

// Row is a record in the list. It contains nothing of the request, the answer or the
// key. Times are in epoch milliseconds, 0 for none.
type Row struct {
	PK      string   `json:"pk"`
	Name    string   `json:"name"` // the short name in logs
	State   string   `json:"state"`
	Reasons []string `json:"reasons,omitempty"` // reasons why the record waits
	Route   string   `json:"route,omitempty"`
	Caller  string   `json:"caller,omitempty"`
	Took    int64    `json:"took,omitempty"` // ms from the claim to the last phase
	Handler string   `json:"handler,omitempty"`
	Phase   string   `json:"phase,omitempty"` // the recovery point
	Status  int      `json:"status,omitempty"`
	Tries   int      `json:"tries,omitempty"`
	Jobs    int      `json:"jobs,omitempty"` // undelivered jobs
	Error   string   `json:"error,omitempty"`
	Created int64    `json:"created"`
	Run     int64    `json:"run,omitempty"`
	Lease   int64    `json:"lease,omitempty"`
}

// Search is a search for one request, by Key or Any, or for all requests of one caller.
type Search struct {
	Key       string `json:"key,omitempty"` // the client's key
	Scope     string `json:"scope,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Caller    bool   `json:"caller,omitempty"` // all requests of Scope
	Scan      bool   `json:"scan,omitempty"`   // read the whole table
	// Any is a record's partition key or short name, an operation's id, or a job's id.
	Any string `json:"any,omitempty"`
}

// Found is the result of a search.
type Found struct {
	PKs []string `json:"pks"`
	// Only says what was not compared, or, if nothing was found, that everything was
	// compared.
	Only string `json:"only,omitempty"`
}

// Action is a decision of an operator.
type Action struct {
	Do string `json:"do"` // retry, settle, redrive, cancel, release or forget
	// Many says that the operator decides about several records at once.
	Many bool   `json:"many,omitempty"`
	PK   string `json:"pk"`
	// Seen is [Story.Seen] of the story that the operator saw. Required.
	Seen string `json:"seen"`
	By   string `json:"by"`

	// For a retry that settles the call in doubt, one of these: Result is the outcome,
	// NotMade says that the call was not made, RiskTwice allows a second call, and Ask
	// looks the call up.
	Result    json.RawMessage `json:"result,omitempty"`
	NotMade   bool            `json:"not_made,omitempty"`
	RiskTwice bool            `json:"risk_twice,omitempty"`
	Ask       bool            `json:"ask,omitempty"` // a completer's attempt looks the call up

	// For a settlement: the answer for the client.
	Status      int    `json:"status,omitempty"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"`

	// For a redrive or a cancel: the jobs. Empty: all parked jobs, or all jobs that may be
	// cancelled.
	Jobs []string `json:"jobs,omitempty"`

	// For a forget: what is lost, as in [Offer.Loses].
	Loses []string `json:"loses,omitempty"`
}
