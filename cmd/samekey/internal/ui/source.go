package ui

import (
	"context"
	"encoding/json"
	"errors"
)

// Source is the table that the page shows. A Source is safe for concurrent use.
type Source interface {
	// About returns the table's name and place. It doesn't call the database.
	About() About
	// Size returns the table's approximate size, so that the page can state the cost of
	// reading all of it.
	Size(ctx context.Context) (Size, error)
	// Browse reads all records in pages, and calls the function see with the rows of each
	// page. The next call of see begins only after the previous one has returned. Browse
	// returns the first error, or the error of ctx.
	Browse(ctx context.Context, see func([]Row, Progress)) error
	// Waiting returns the rows of records that wait for people. The parameter most is the
	// maximum number of rows: if more records wait, Waiting returns the oldest. If the
	// table has no index for this query, the error is ErrNoQuery.
	Waiting(ctx context.Context, most int) ([]Row, error)
	// Row reads a record. If there is no record, ok is false.
	Row(ctx context.Context, pk string) (row Row, ok bool, err error)
	// Follow first calls the function started. Then, until ctx ends, it calls the function
	// changed with the keys of records that were written. If changes can't be followed, it
	// returns ErrNoStream at once.
	Follow(ctx context.Context, started func(), changed func(pks []string)) error
	// Find returns the records that a search names, the newest first.
	Find(ctx context.Context, s Search) (*Found, error)
	// Story explains a record. If personal is true, the story also has the request, the
	// answer, results of phases and arguments of jobs. If there is no record, the error
	// matches ErrGone.
	Story(ctx context.Context, pk string, personal bool) (*Story, error)
	// Ask returns the sentences that a person has to agree to before Act carries out the
	// action.
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
	// ErrRefused matches errors about an invalid search, and about an action that
	// doesn't fit the record, contradicts itself, or needs a missing data key. A
	// refused action has changed nothing.
	ErrRefused = errors.New("refused")
)

// About is the table's name and place.
type About struct {
	Table    string `json:"table"`
	Region   string `json:"region,omitempty"`
	Endpoint string `json:"endpoint,omitempty"` // URL of a local database
	// Local says that the database is on this machine, where reads are free. If Local is
	// true, the page reads the whole table without being asked.
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

// Row is a record in the list. A row has the request's route and caller, and the answer's
// status, but no other part of the request or the answer. It doesn't contain the client's
// key. Times are in epoch milliseconds, 0 for none.
type Row struct {
	PK      string   `json:"pk"`
	Name    string   `json:"name"` // the record's short name, as in logs
	State   string   `json:"state"`
	Reasons []string `json:"reasons,omitempty"` // reasons why the record waits
	Route   string   `json:"route,omitempty"`
	Caller  string   `json:"caller,omitempty"`
	Took    int64    `json:"took,omitempty"` // ms from the claim to the most recent commit of a phase
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

// Search asks for one request by Key or by Any. If Caller is true, Search asks for all
// requests of the caller in Scope.
type Search struct {
	Key       string `json:"key,omitempty"` // the client's key
	Scope     string `json:"scope,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Caller    bool   `json:"caller,omitempty"`
	Scan      bool   `json:"scan,omitempty"` // read the whole table
	// Any is a record's partition key, or the short name of a record in the list.
	Any string `json:"any,omitempty"`
}

// Found is the result of a search.
type Found struct {
	PKs []string `json:"pks"`
	// Only is a note to the operator. It says why PKs may lack records, or that all
	// records were compared and none matches.
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

	// A retry that settles the call in doubt has one of the next four fields. Result is
	// the outcome of the call. NotMade says that the call was not made. RiskTwice
	// allows a second call. Ask lets an attempt of the completer look the call up.
	Result    json.RawMessage `json:"result,omitempty"`
	NotMade   bool            `json:"not_made,omitempty"`
	RiskTwice bool            `json:"risk_twice,omitempty"`
	Ask       bool            `json:"ask,omitempty"`

	// If Do is "settle", the next three fields are the answer for the client.
	Status      int    `json:"status,omitempty"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"content_type,omitempty"`

	// Jobs are the names of the jobs to redrive or cancel. If Jobs is empty, a redrive
	// takes all parked jobs, and a cancel takes all jobs that can be cancelled.
	Jobs []string `json:"jobs,omitempty"`

	// If Do is "forget", Loses says what the operator agrees to lose. Its words are
	// those of [Offer.Loses].
	Loses []string `json:"loses,omitempty"`
}
