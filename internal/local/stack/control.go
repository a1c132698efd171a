package stack

import (
	"encoding/json"
	"net/http"

	"github.com/samekey/samekey/internal/base/loopback"
)

// FunctionState is the state of a function in the answer of GET /functions.
type FunctionState struct {
	Name string `json:"name"` // logical id
	// PID is the id of the process whose running invocation began last. If no invocation
	// runs, PID is the id of the idle process that was used last; 0 if there is none.
	PID int `json:"pid"`
	// Invocations is the number of invocations that have begun, from all sources.
	Invocations int64 `json:"invocations"`
	// Paused is true if all of the function's event sources are paused.
	Paused bool `json:"paused"`
}

func (s *Stack) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /functions", func(w http.ResponseWriter, _ *http.Request) {
		running := s.running()
		list := make([]FunctionState, 0, len(running))
		for _, f := range running {
			list = append(list, f.state())
		}
		writeJSON(w, http.StatusOK, list)
	})
	mux.HandleFunc("POST /functions/{name}/pause", s.withFunction(func(w http.ResponseWriter, _ *http.Request, f *function) {
		f.pause()
		writeJSON(w, http.StatusOK, f.state())
	}))
	mux.HandleFunc("POST /functions/{name}/resume", s.withFunction(func(w http.ResponseWriter, _ *http.Request, f *function) {
		f.resume()
		writeJSON(w, http.StatusOK, f.state())
	}))
	mux.HandleFunc("POST /tick/{name}", s.withFunction(func(w http.ResponseWriter, r *http.Request, f *function) {
		if len(f.timers) == 0 {
			writeProblem(w, http.StatusNotFound, "function "+f.def.ID+" has no schedule")
			return
		}
		if err := f.tick(r.Context()); err != nil {
			writeProblem(w, http.StatusBadGateway, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, f.state())
	}))
	mux.HandleFunc("GET /failed", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.failed.list())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path)
	})
	return loopback.Guard{Refuse: func(w http.ResponseWriter, no loopback.Refusal) {
		writeProblem(w, no.Status, no.Why)
	}}.For(s.servers.control.url).Wrap(mux)
}

func (f *function) state() FunctionState {
	return FunctionState{Name: f.def.ID, PID: f.lambda.PID(), Invocations: f.invocations.Load(), Paused: f.paused()}
}

func (s *Stack) withFunction(serve func(http.ResponseWriter, *http.Request, *function)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		for _, f := range s.running() {
			if f.def.ID == name {
				serve(w, r, f)
				return
			}
		}
		writeProblem(w, http.StatusNotFound, "there is no function "+name)
	}
}

func writeProblem(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"error": message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
